import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { defaultCacheDir } from '../src/dev/provision.ts'
import { NEWER_NODES, provideNewerNode } from '../src/dev/npm-programs.ts'

/**
 * Runs `npm run test:nodes`: the unit and integration tests on each newer release of Node.js, one after the other.
 * Arguments go to mocha as they are. Ends with exit code 1 when a test failed on any of them.
 */
const RUNNER = fileURLToPath(new URL('./run.ts', import.meta.url))

for (const release of NEWER_NODES) {
  const print = (line: string): void => void process.stdout.write(`${line}\n`)
  const node = await provideNewerNode(release, { cacheDir: defaultCacheDir(process.env), print })
  print(`Node.js ${release}:`)
  const run = spawn(node, ['--import', 'tsx', RUNNER, 'nodes', ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  const [code] = (await once(run, 'exit')) as [number | null]
  if (code !== 0) process.exitCode = 1
}

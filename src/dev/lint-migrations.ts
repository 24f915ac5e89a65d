import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OLDER_RELEASES, provideNpmProgram } from './npm-programs.ts'
import { runTool } from './guarded-process.ts'

/** The SQL of a migration, and whether TypeORM applies it in a transaction. */
export type MigrationSql = { name: string; statements: readonly string[]; isInTransaction: boolean }

/** Lints migrations: https://squawkhq.com. */
const SQUAWK_VERSION = '2.66.0'

/** The session of `posthorn migrate` has a `statement_timeout`. */
const EXCLUDED_RULES = ['require-statement-timeout']

const LINT_TIMEOUT_MS = 60_000

/**
 * Lints migrations of tables that are in use: what blocks reads or writes for long, rewrites a table, or breaks the
 * version before. Installs the linter into the cache, once. A statement that is right all the same has a line
 * `-- squawk-ignore RULE` before it.
 *
 * @returns a line for each finding: migration, line, column, rule and reason
 * @throws Error when the linter cannot be installed or run
 */
export async function lintMigrations(
  migrations: readonly MigrationSql[],
  cacheDir: string,
): Promise<string[]> {
  const program = join('bin', process.platform === 'win32' ? 'squawk.exe' : 'squawk')
  const name = `@squawk-cli/${process.platform}-${process.arch}`
  const squawk = await provideNpmProgram(
    { name, version: SQUAWK_VERSION, program, cacheName: 'squawk' },
    cacheDir,
    () => process.stdout.write('Installing the linter of migrations (once, a few seconds) …\n'),
  )
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-lint-'))
  const lint = async (isInTransaction: boolean): Promise<string[]> => {
    const chosen = migrations.filter((migration) => migration.isInTransaction === isInTransaction)
    if (chosen.length === 0) return []
    const files = chosen.map(({ name, statements }) => {
      writeFileSync(join(folder, `${name}.sql`), statements.map((statement) => `${statement};\n`).join(''))
      return `${name}.sql`
    })
    const args = [
      `--pg-version=${Math.min(...OLDER_RELEASES)}`,
      '--reporter=gcc',
      `--exclude=${EXCLUDED_RULES.join(',')}`,
      ...(isInTransaction ? ['--assume-in-transaction'] : []),
    ]
    return runSquawk(squawk, [...args, ...files], folder)
  }
  try {
    return [...(await lint(true)), ...(await lint(false))]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** It exits with 1 when it finds something. */
async function runSquawk(command: string, args: string[], cwd: string): Promise<string[]> {
  const findings: string[] = []
  const onLine = (line: string): void => {
    if (/\.sql:\d+:\d+: /.test(line)) findings.push(line)
  }
  try {
    await runTool({ command, args, cwd, timeoutMs: LINT_TIMEOUT_MS, onLine })
  } catch (error) {
    if (findings.length === 0) throw error
  }
  return findings
}

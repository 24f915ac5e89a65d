import type { DataSource } from 'typeorm'
import type { Config } from '../../config/load.ts'
import {
  hasSessionLimits,
  hasSharedSessions,
  listAppliedMigrations,
  listMissingRights,
  readServerState,
  type ServerState,
} from '../../db/queries/server-state.ts'
import { codeOf } from '../../db/connection/connection-errors.ts'
import type { Pooler } from '../../db/connection/session-limits.ts'
import { describeError } from '../../process/visible-text.ts'
import { defineCheck, ok, problem, problemsOr } from './check.ts'
import type { Check, DatabaseAccess, Finding } from './check.ts'
import type { ProblemCode } from './problems.ts'
import { measureOffset, readDatabaseMs } from '../../db/connection/database-clock.ts'
import { countByKey } from '../../db/queries/webhooks.ts'
import { createSecretBox, type EncryptionKey } from '../../secret-box.ts'
import { keyRingProblems } from '../../process/start-checks.ts'

const SETTINGS = ['databaseUrl', 'databasePooler'] as const

/** With a larger difference, times in the log and in rows cannot be compared. */
const NOTABLE_OFFSET_MS = 1_000

/** What every process needs to read. */
const MIGRATIONS_TABLE = 'migrations'

const INSUFFICIENT_PRIVILEGE = '42501'

/** Checks the database: reach, release, rights, durability, pooler, clock and migrations. They write nothing. */
export function databaseChecks(config: Partial<Config>, access: DatabaseAccess): Check[] {
  const inDatabase = (
    name: string,
    run: (dataSource: DataSource, pooler: Pooler) => Promise<Finding[]>,
  ): Check =>
    defineCheck(config, {
      name,
      settings: SETTINGS,
      needs: ['database.connection'],
      failure: 'database.check_failed',
      run: async (given) => {
        try {
          return await run(await access.open(given), given.databasePooler)
        } catch (error) {
          if (codeOf(error) !== INSUFFICIENT_PRIVILEGE) throw error
          return [problem('database.rights_missing', describeError(error))]
        }
      },
    })
  return [
    defineCheck(config, {
      name: 'database.connection',
      settings: SETTINGS,
      failure: 'database.unreachable',
      run: (given) => checkConnection(access, given),
    }),
    inDatabase('database.version', async (db) => versionFindings(await readServerState(db))),
    inDatabase('database.writable', async (db) => writableFindings(await readServerState(db))),
    inDatabase('database.durability', async (db) => durabilityFindings(await readServerState(db))),
    inDatabase('database.rights', checkRights),
    inDatabase('database.pooler', checkPooler),
    inDatabase('database.clock', checkClock),
    inDatabase('database.migrations', checkMigrations),
  ]
}

async function checkConnection(
  access: DatabaseAccess,
  config: Pick<Config, (typeof SETTINGS)[number]>,
): Promise<Finding[]> {
  const { hostname, port, pathname } = new URL(config.databaseUrl)
  const address = `${hostname}:${port === '' ? '5432' : port}${pathname}`
  try {
    const { role } = await readServerState(await access.open(config))
    return [ok('database.connection', `PostgreSQL answers at ${address} as ${role}`)]
  } catch (error) {
    return [problem(connectionProblem(error), `${describeError(error)} (${address})`)]
  }
}

/** By SQLSTATE: invalid authorisation or no right to connect; no such database; a startup parameter that is refused. */
function connectionProblem(error: unknown): ProblemCode {
  const code = codeOf(error)
  if (code.startsWith('28') || code === INSUFFICIENT_PRIVILEGE) return 'database.login_refused'
  if (code === '3D000') return 'database.missing'
  return code === '08P01' ? 'database.pooler_undeclared' : 'database.unreachable'
}

async function checkRights(db: DataSource): Promise<Finding[]> {
  const tables = db.entityMetadatas.map(({ tableName }) => tableName)
  const [lacking, reading] = await Promise.all([
    listMissingRights(db, tables),
    listMissingRights(db, [MIGRATIONS_TABLE]),
  ])
  const unread = reading.filter(({ rights }) => rights.includes('SELECT'))
  const missing = [...lacking, ...unread.map(({ table }) => ({ table, rights: ['SELECT'] }))]
  if (missing.length === 0)
    return [ok('database.rights', 'the role may read and write every table that is there')]
  const seen = missing.map(({ table, rights }) => `${table}: ${rights.join(', ')}`).join('; ')
  return [problem('database.rights_missing', `the role lacks ${seen}`)]
}

async function checkPooler(db: DataSource, pooler: Pooler): Promise<Finding[]> {
  // Sharing proves a pooler. Its absence cannot be proved: one with room gives each connection a session of its own.
  if (pooler === 'transaction')
    return [ok('database.pooler', 'DATABASE_POOLER=transaction suits a server with a pooler and without one')]
  if (await hasSharedSessions(db))
    return [problem('database.pooler_undeclared', 'transactions of one connection get different sessions')]
  if (!(await hasSessionLimits(db)))
    return [problem('database.pooler_undeclared', 'the time limits of connections do not reach the server')]
  return [ok('database.pooler', 'no pooler in transaction mode was seen, as DATABASE_POOLER=none has it')]
}

async function checkClock(db: DataSource): Promise<Finding[]> {
  const [{ lowest, highest }] = await measureOffset(
    () => readDatabaseMs(db),
    () => Date.now(),
  )
  const behindMs = Math.round((lowest + highest) / 2)
  const direction = behindMs > 0 ? 'behind' : 'ahead of'
  const seen = `this machine's clock is ${Math.abs(behindMs)} ms ${direction} the database's`
  const isNotable = Math.max(lowest, -highest) > NOTABLE_OFFSET_MS
  return [isNotable ? problem('database.clock_differs', seen) : ok('database.clock', seen)]
}

async function checkMigrations(db: DataSource): Promise<Finding[]> {
  const own = db.migrations.map((migration) => migration.name ?? migration.constructor.name)
  const applied = await listAppliedMigrations(db)
  const pending = own.filter((name) => !applied.includes(name))
  const unknown = applied.filter((name) => !own.includes(name))
  return problemsOr(ok('database.migrations', `all ${own.length} migrations are applied`), [
    pending.length > 0 && problem('database.migrations_pending', `not applied: ${pending.join(', ')}`),
    unknown.length > 0 &&
      problem('database.migrations_unknown', `unknown to this release: ${unknown.join(', ')}`),
  ])
}

/** The releases of PostgreSQL that the tests run on. */
const OLDEST_RELEASE = 15
const NEWEST_RELEASE = 18

export function versionFindings({ version, release }: Pick<ServerState, 'version' | 'release'>): Finding[] {
  const seen = `PostgreSQL ${version}`
  if (release < OLDEST_RELEASE) return [problem('database.version_unsupported', seen)]
  if (release > NEWEST_RELEASE) return [problem('database.version_untested', seen)]
  return [ok('database.version', seen)]
}

export function writableFindings({
  isStandby,
  isReadOnly,
}: Pick<ServerState, 'isStandby' | 'isReadOnly'>): Finding[] {
  if (isStandby) return [problem('database.read_only', 'the server is a standby')]
  if (isReadOnly) return [problem('database.read_only', 'default_transaction_read_only is on')]
  return [ok('database.writable', 'the server takes writes')]
}

export function durabilityFindings({
  fsync,
  fullPageWrites,
  synchronousCommit,
}: Pick<ServerState, 'fsync' | 'fullPageWrites' | 'synchronousCommit'>): Finding[] {
  const seen = `fsync and full_page_writes are on, synchronous_commit is ${synchronousCommit}`
  return problemsOr(ok('database.durability', seen), [
    fsync === 'off' && problem('database.fsync_off', 'fsync is off'),
    fullPageWrites === 'off' && problem('database.full_page_writes_off', 'full_page_writes is off'),
    synchronousCommit === 'off' &&
      problem('database.synchronous_commit_off', 'synchronous_commit is off for this role'),
  ])
}

/** Checks that the key ring opens what is stored, and names the operator keys. */
export function keyChecks(config: Partial<Config>, access: DatabaseAccess): Check[] {
  return [
    defineCheck(config, {
      name: 'keys.encryption',
      settings: ['databaseUrl', 'databasePooler', 'encryptionKeys'],
      needs: ['database.connection', 'database.migrations'],
      failure: 'database.check_failed',
      run: async (given) => checkKeyRing(await access.open(given), given.encryptionKeys),
    }),
    defineCheck(config, {
      name: 'keys.operator',
      settings: ['operatorKeys'],
      failure: 'settings.invalid',
      run: ({ operatorKeys }) => {
        const names = operatorKeys.map(({ name, scopes }) => `${name} (${scopes.join(', ')})`)
        const seen = names.length === 0 ? 'none here: without any there is no operator API' : names.join('; ')
        return [ok('keys.operator', seen)]
      },
    }),
  ]
}

async function checkKeyRing(db: DataSource, ring: readonly EncryptionKey[]): Promise<Finding[]> {
  const box = createSecretBox(ring)
  const [counts, closed] = await Promise.all([countByKey(db), keyRingProblems(db, box)])
  const isKnown = (keyId: string): boolean => ring.some(({ id }) => id === keyId)
  const problems = counts.flatMap(({ keyId, count }) => {
    if (keyId === null) return [problem('keys.unsealed', `${count} stored secret(s) are not sealed`)]
    const reason = closed.get(keyId)
    if (reason === undefined) return []
    const code = isKnown(keyId) ? 'keys.wrong' : 'keys.missing'
    return [problem(code, `${count} secret(s) under key "${keyId}": ${reason}`)]
  })
  const older = counts.filter(
    ({ keyId }) => keyId !== null && keyId !== box.newestKeyId && !closed.has(keyId),
  )
  const isRotating = older.map(({ keyId, count }) =>
    problem(
      'keys.rotation_unfinished',
      `${count} secret(s) are under key "${String(keyId)}", and not under "${box.newestKeyId}"`,
    ),
  )
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  const fine = ok('keys.encryption', `${total} secret(s), all under the newest key "${box.newestKeyId}"`)
  return problemsOr(fine, [...problems, ...isRotating])
}

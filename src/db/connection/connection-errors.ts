import { setTimeout as delay } from 'node:timers/promises'

/**
 * SQLSTATE classes and codes of temporary errors: connection trouble (08), roles and passwords being changed (28),
 * disk, memory or connections used up (53), shutdown (57P0x), a statement, lock or transaction that took too long, an
 * I/O error (58030), read-only after a failover, conflicts that go away when the work is done again.
 */
const TRANSIENT_SQLSTATE = /^(08...|28...|53...|57P0[1-5]|57014|55P03|25P0[34]|25006|58030|40001|40P01)$/

/** Of these, the codes that end one statement or transaction of a database that works. */
const ONE_STATEMENT_SQLSTATE = /^(57014|55P03|25P0[34]|40001|40P01)$/

const LOCK_NOT_AVAILABLE = '55P03'
const QUERY_CANCELED = '57014'

const TRANSIENT_SYSTEM = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
])

/**
 * Messages of errors without a code that `pg`, its pool and TypeORM throw when a connection breaks or cannot be had.
 */
const TRANSIENT_MESSAGE =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Driver not Connected|Query runner already released|Database connection provided by a query runner was already released|Cannot use a pool after)/i

/** The database did not answer within a limit of this process. */
export class DatabaseUnavailableError extends Error {
  override readonly name: string = 'DatabaseUnavailableError'
}

/** The lock of a webhook was not granted in time: the same to a caller of the API, but only this webhook has to wait. */
export class WebhookLockedError extends DatabaseUnavailableError {
  override readonly name = 'WebhookLockedError'
}

/** Too much waits for the database in this process. */
export class DatabaseBusyError extends DatabaseUnavailableError {
  override readonly name = 'DatabaseBusyError'
  /** False when the work was never begun: nothing was done. Otherwise it may still be committed. */
  readonly isBegun: boolean

  constructor(message: string, { isBegun }: { isBegun: boolean }) {
    super(message)
    this.isBegun = isBegun
  }
}

/** True when the database is away or asks to try again: the statement was not wrong, and may be repeated. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof DatabaseUnavailableError) return true
  // TypeORM wraps what the driver threw, and copies its code but not its class.
  if ('driverError' in error && error.driverError !== error && isDatabaseUnavailable(error.driverError))
    return true
  if (error instanceof AggregateError && error.errors.some(isDatabaseUnavailable)) return true
  const code = codeOf(error)
  if (TRANSIENT_SQLSTATE.test(code) || TRANSIENT_SYSTEM.has(code)) return true
  return TRANSIENT_MESSAGE.test(error.message)
}

/**
 * True when the database is away or takes no writes: other statements fail as well. False for a statement that ran into
 * its time limit or into others, and for one that waited too long in this process.
 */
export function isDatabaseDown(error: unknown): boolean {
  if (!isDatabaseUnavailable(error) || error instanceof DatabaseBusyError) return false
  return !ONE_STATEMENT_SQLSTATE.test(codeOf(error))
}

/** Returns whether a lock could not be taken in time: a problem of one row, not of the whole database. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === LOCK_NOT_AVAILABLE
}

/** True when the database worked at a statement until its time limit. */
export function isStatementTimeout(error: unknown): boolean {
  return codeOf(error) === QUERY_CANCELED
}

/** The SQLSTATE of an error of PostgreSQL, or the code of the system; empty without one. */
export function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

const INITIAL_DELAY_MS = 100
const MAX_DELAY_MS = 2_000

/**
 * Runs a database call again and again while the database is away, with growing pauses.
 * Any other error is thrown at once; so is that of a locked webhook, which may last: an activity is repeated by Temporal,
 * and gives its slot to others meanwhile. Rejects when `signal` aborts during a pause.
 */
export async function retryWhileUnavailable<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let pauseMs = INITIAL_DELAY_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_DELAY_MS)) {
    try {
      return await call()
    } catch (error) {
      if (!isDatabaseUnavailable(error) || error instanceof WebhookLockedError) throw error
      await delay(pauseMs, undefined, signal === undefined ? {} : { signal })
    }
  }
}

/** The same for one batch of many. One that takes too long would do so again: its error is thrown. */
export function retryBatch<T>(batch: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return retryWhileUnavailable(() => batch().catch(endBatch), signal)
}

function endBatch(error: unknown): never {
  throw isStatementTimeout(error)
    ? new Error(`a batch took too long: ${String(error)}`, { cause: error })
    : error
}

/** SQLSTATE classes and codes that say "not now": connection trouble, shutdown, too many connections, read-only. */
const TRANSIENT_SQLSTATE = /^(08...|57P0[123]|53300|25006|40001|40P01)$/

const TRANSIENT_SYSTEM = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

/** What `pg` says without a code when a connection breaks or none is to be had. */
const TRANSIENT_MESSAGE =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Driver not Connected)/i

/** True when the database is away or asks to try again: the statement was not wrong. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof AggregateError && error.errors.some(isDatabaseAway)) return true
  const code = 'code' in error ? error.code : undefined
  if (typeof code === 'string' && (TRANSIENT_SQLSTATE.test(code) || TRANSIENT_SYSTEM.has(code))) return true
  return TRANSIENT_MESSAGE.test(error.message)
}

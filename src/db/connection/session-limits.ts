/** What stands between Posthorn and PostgreSQL: nothing, or a pooler that gives each transaction another session. */
export type Pooler = 'none' | 'transaction'

/** Time-out of the statements of requests: one that waits for it is still answered within ten seconds. */
export const DEFAULT_STATEMENT_TIMEOUT_MS = 6_000

/** For one statement over many rows, such as stopping all deliveries of a webhook. */
export const LONG_STATEMENT_TIMEOUT_MS = 60_000

/** For migrations: one that creates an index reads a whole table. */
export const MIGRATION_STATEMENT_TIMEOUT_MS = 3_600_000

/** How much longer this process waits than the server: the server's own error costs no connection. */
export const CLIENT_MARGIN_MS = 2_000

/** Locks are held for milliseconds; a longer wait means that their owner is stuck. */
const LOCK_TIMEOUT_MS = 5_000

/** Nothing slow is done between two statements of a transaction: its process is paused, or its host lost. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000

/**
 * Parameters of a session with PostgreSQL. The last five have the server notice a client that is gone: within 25 s
 * where it was idle (10 + 3 × 5), 20 s where it was being sent to, 5 s in the middle of a statement.
 */
function sessionParameters(statementTimeoutMs: number, lockTimeoutMs: number): Record<string, number> {
  return {
    ...transactionParameters(statementTimeoutMs),
    lock_timeout: lockTimeoutMs,
    tcp_keepalives_idle: 10,
    tcp_keepalives_interval: 5,
    tcp_keepalives_count: 3,
    tcp_user_timeout: 20_000,
    client_connection_check_interval: 5_000,
  }
}

function transactionParameters(statementTimeoutMs: number): Record<string, number> {
  return {
    statement_timeout: statementTimeoutMs,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
  }
}

/**
 * Returns the connection's address with these limits as startup options, of which the last wins: options of the address
 * itself, but for a connection with a lock time-out of its own, such as that of migrations.
 */
export function withSessionLimits(url: string, statementTimeoutMs: number, lockTimeoutMs?: number): string {
  const limited = new URL(url)
  const settings = Object.entries(sessionParameters(statementTimeoutMs, lockTimeoutMs ?? LOCK_TIMEOUT_MS))
  const limits = settings.map(([name, value]) => `-c ${name}=${value}`).join(' ')
  const own = limited.searchParams.get('options') ?? ''
  const options = lockTimeoutMs === undefined ? [limits, own] : [own, limits]
  limited.searchParams.set('options', options.join(' ').trim())
  return limited.href
}

/** Begins a transaction under these limits, in one round trip, where the session cannot have any. */
export function startLimitedTransaction(statementTimeoutMs: number): string {
  const settings = Object.entries(transactionParameters(statementTimeoutMs))
  return ['START TRANSACTION', ...settings.map(([name, value]) => `SET LOCAL ${name} = ${value}`)].join('; ')
}

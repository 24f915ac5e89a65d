import pLimit from 'p-limit'
import { DatabaseUnavailableError } from '../db/connection/connection-errors.ts'
import { DatabaseClient } from '../db/connection/database-client.ts'
import { withSessionLimits } from '../db/connection/session-limits.ts'
import { every, processTimers } from '../timers.ts'

/**
 * One connection that listens for committed rows and holds the locks of organisations: where it is lost, all of its locks
 * are.
 */
export type RelaySession = {
  /** Aborts when the connection is lost or was silent for too long. */
  lost: AbortSignal
  /** Takes the lock of an organisation; false where another process has it. */
  lock(organisationId: string): Promise<boolean>
  /** Never rejects: the locks of a lost session are free. */
  unlock(organisationId: string): Promise<void>
  /** Never rejects. */
  end(): Promise<void>
}

const CONNECT_TIMEOUT_MS = 5_000
const STATEMENT_TIMEOUT_MS = 5_000

/** A silent connection is noticed by the first statement after so long; with its time limit, within 12 seconds. */
const HEARTBEAT_INTERVAL_MS = 5_000

/** PostgreSQL frees the locks of a process that is paused, or whose host is lost, after so long. */
const IDLE_TIMEOUT_MS = 30_000

const LOCK_KEY = `hashtextextended('posthorn_outbox/' || $1, 0)`

/** Opens the session. `onCommit` is called when rows were committed. Rejects where the database cannot be reached. */
export async function openRelaySession(url: string, onCommit: () => void): Promise<RelaySession> {
  const client = new DatabaseClient({
    connectionString: withSessionLimits(url, STATEMENT_TIMEOUT_MS),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'posthorn relay',
    keepAlive: true,
    policy: { statementTimeoutMs: STATEMENT_TIMEOUT_MS, pooler: 'none', open: new Set() },
  })
  const losing = new AbortController()
  client.once('end', () => losing.abort(new DatabaseUnavailableError('The session of the relay was lost')))
  client.on('notification', onCommit)
  try {
    await client.connect()
    await client.query(`SET idle_session_timeout = ${IDLE_TIMEOUT_MS}`)
    await client.query('LISTEN posthorn_outbox')
  } catch (error) {
    await endQuietly(client)
    throw error
  }
  // One statement at a time: its time limit begins when it is sent.
  const inTurn = pLimit(1)
  // It aborts `lost` where it fails.
  const beat = (): void => void inTurn(() => client.query('SELECT 1')).catch(() => undefined)
  const stopHeartbeat = every(processTimers, HEARTBEAT_INTERVAL_MS, beat)
  losing.signal.addEventListener('abort', stopHeartbeat)
  return {
    lost: losing.signal,
    async lock(organisationId) {
      const statement = `SELECT pg_try_advisory_lock(${LOCK_KEY}) AS locked`
      const { rows } = await inTurn(() => client.query<{ locked: boolean }>(statement, [organisationId]))
      return rows[0]?.locked === true
    },
    async unlock(organisationId) {
      if (losing.signal.aborted) return
      // Without an answer the connection is given up, and the lock with it.
      const statement = `SELECT pg_advisory_unlock(${LOCK_KEY})`
      await inTurn(() => client.query(statement, [organisationId])).catch(() => undefined)
    },
    end: () => endQuietly(client),
  }
}

async function endQuietly(client: DatabaseClient): Promise<void> {
  await client.end().catch(() => undefined)
}

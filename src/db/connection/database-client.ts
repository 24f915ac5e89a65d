import pg from 'pg'
import { afterPauses } from '../../timers.ts'
import { DatabaseUnavailableError } from './connection-errors.ts'
import {
  CLIENT_MARGIN_MS,
  startLimitedTransaction,
  type Pooler,
  LONG_STATEMENT_TIMEOUT_MS,
} from './session-limits.ts'
import type { DataSource, EntityManager } from 'typeorm'
import { sql } from './db.ts'

const FIRST_RENEWAL = 16
const MAX_AGE_MS = 5_000

/** Says, before each statement on a connection, whether the plans it keeps are to be made anew. */
export type PlanRenewal = { isDue(): boolean }

/**
 * A connection keeps plans of its prepared statements and of the checks of foreign keys. PostgreSQL makes them anew
 * when a table was analysed, which is a minute after a burst began to fill it: until then a plan made for an empty
 * table reads the whole of a full one, for every row. So plans are dropped whenever the number of statements has
 * doubled, since so may have the tables, and when they are older than five seconds.
 */
export function createPlanRenewal(nowMs: () => number = () => performance.now()): PlanRenewal {
  let statements = 0
  let renewAt = FIRST_RENEWAL
  let renewedAtMs = nowMs()
  return {
    isDue() {
      statements++
      const now = nowMs()
      if (statements < renewAt && now - renewedAtMs < MAX_AGE_MS) return false
      renewAt = Math.max(FIRST_RENEWAL, 2 * statements)
      renewedAtMs = now
      return true
    },
  }
}

/** How the connections of one pool behave, and which there are. */
export type ConnectionPolicy = {
  statementTimeoutMs: number
  pooler: Pooler
  open: Set<DatabaseClient>
}

/** A server that takes no leave is not waited for. */
const END_TIMEOUT_MS = 2_000

type Send = (...given: unknown[]) => unknown

/**
 * A connection that never waits for ever. Where an answer does not come in time its socket is destroyed: `pg` itself
 * (`query_timeout`) would give the connection back to the pool with the statement still under way. The connections of
 * the same pool that have not answered since are closed too, so that no other caller waits for them.
 * A class, since the pool makes its connections with `new`.
 */
export class DatabaseClient extends pg.Client {
  readonly #policy: ConnectionPolicy
  readonly #plans = createPlanRenewal()
  #timeoutMs: number
  #underWay = 0
  #answeredAtMs = -Infinity

  constructor(config: pg.ClientConfig & { policy: ConnectionPolicy }) {
    super(config)
    this.#policy = config.policy
    this.#timeoutMs = config.policy.statementTimeoutMs
    // An error event without a listener ends the process, and TypeORM does not always listen.
    this.on('error', () => undefined)
    this.once('connect', () => {
      this.#answeredAtMs = performance.now()
      config.policy.open.add(this)
    })
    this.once('end', () => config.policy.open.delete(this))
    const send = super.query.bind(this) as Send
    // Assigned, since `query` has more overloads than a method could repeat.
    Object.assign(this, { query: (...given: unknown[]) => this.#query(send, given) })
  }

  /** Lets statements take that long until the transaction ends; the server's limit is set separately. */
  raiseStatementTimeout(timeoutMs: number): void {
    this.#timeoutMs = Math.max(this.#timeoutMs, timeoutMs)
  }

  override end(): Promise<void>
  override end(callback: (error: Error) => void): void
  override end(callback?: (error: Error) => void): Promise<void> | void {
    const cut = setTimeout(() => this.connection.stream.destroy(), END_TIMEOUT_MS).unref()
    this.once('end', () => clearTimeout(cut))
    return callback === undefined ? super.end() : super.end(callback)
  }

  #query(send: Send, given: unknown[]): unknown {
    const { statementTimeoutMs, pooler } = this.#policy
    const [first, ...rest] = given
    if (this.#isAtRest()) {
      this.#timeoutMs = statementTimeoutMs
      // `pg` sends the statement when this was answered.
      if (this.#plans.isDue()) (send('DISCARD PLANS') as Promise<unknown>).catch(() => undefined)
    }
    const statement = pooler === 'none' ? first : forPooler(first, statementTimeoutMs)
    const result = send(statement, ...rest)
    if (result instanceof Promise) this.#watch(result)
    return result
  }

  #watch(result: Promise<unknown>): void {
    const sentAtMs = performance.now()
    const timeoutMs = this.#timeoutMs + CLIENT_MARGIN_MS
    this.#underWay++
    const cancel = afterPauses(timeoutMs, () => this.#giveUp(sentAtMs, timeoutMs))
    const settled = (): void => {
      cancel()
      this.#underWay--
      this.#answeredAtMs = performance.now()
    }
    result.then(settled, settled)
  }

  #giveUp(sentAtMs: number, timeoutMs: number): void {
    this.#close(`The database did not answer within ${timeoutMs} ms`)
    for (const other of this.#policy.open)
      if (other.#isAtRest() && other.#answeredAtMs < sentAtMs)
        other.#close('Closed, since another connection to the database did not answer')
  }

  /** Neither in a statement nor in a transaction. */
  #isAtRest(): boolean {
    return this.#underWay === 0 && this.getTransactionStatus() === 'I'
  }

  /** Fails what is under way on it, and has the pool forget it. */
  #close(reason: string): void {
    this.connection.stream.destroy(new DatabaseUnavailableError(reason))
  }
}

/** Behind a pooler the next transaction has another session: no named statements, and limits for each transaction. */
function forPooler(statement: unknown, statementTimeoutMs: number): unknown {
  if (statement === 'START TRANSACTION') return startLimitedTransaction(statementTimeoutMs)
  if (typeof statement !== 'object' || statement === null || !('name' in statement)) return statement
  return { ...statement, name: undefined }
}

/** Raises the time limit of the statements that follow, here and in the server, until the transaction ends. */
export async function allowLongerStatements(
  manager: EntityManager,
  timeoutMs = LONG_STATEMENT_TIMEOUT_MS,
): Promise<void> {
  const connection: unknown = await manager.queryRunner?.connect()
  if (!(connection instanceof DatabaseClient)) throw new Error('longer statements need a transaction')
  connection.raiseStatementTimeout(timeoutMs)
  await sql(`SELECT set_config('statement_timeout', :timeout, true)`, { timeout: String(timeoutMs) }).rows(
    manager,
  )
}

/** A transaction whose statements may all take longer. */
export function transactLonger<T>(
  dataSource: DataSource,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  return dataSource.transaction(async (manager) => {
    await allowLongerStatements(manager)
    return work(manager)
  })
}

import type pg from 'pg'
import type { DataSource, EntityManager } from 'typeorm'
import { createDataSource } from '../../../../src/db/connection/data-source.ts'
import { stepOf } from './steps.ts'

export type SentStatement = { text: string; values: unknown[] }

/** Changes a statement on its way to PostgreSQL. `step`: its name, by the text that the product sent. */
export type Rewrite = (step: string, statement: SentStatement) => SentStatement

/** What a session does: the product's own function, on the session's connection. Returns what came of it. */
export type Work<Result> = (db: DataSource) => Promise<Result>

/** One real session with PostgreSQL, that waits before each of its steps until it is let go. */
export type SteppedSession<Result> = {
  readonly pid: number
  /** `ready`: before its step `step()`; `running`: in it, or waiting there for a lock. */
  standing(): 'ready' | 'running' | 'ended'
  step(): string
  /** True after a step of a transaction that has not ended. */
  isInTransaction(): boolean
  /** Runs the work until its first step. */
  begin(work: Work<Result>, rewrite: Rewrite): void
  /** Lets the step go. */
  go(): void
  /** What the work returned or threw, once it has ended. */
  ended(): PromiseSettledResult<Result>
  close(): Promise<void>
}

/** Longer than a step may take: a session that waits for a lock is let wait. */
const STATEMENT_TIMEOUT_MS = 60_000

/** `onChange` is called when the session comes to its next step, and when it ends. */
export async function openSession<Result>(
  url: string,
  onChange: () => void,
): Promise<SteppedSession<Result>> {
  const dataSource = createDataSource({
    url,
    poolSize: 1,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    lockTimeoutMs: 0,
  })
  await dataSource.initialize()
  const runner = dataSource.createQueryRunner()
  const client = (await runner.connect()) as pg.ClientBase
  const [{ pid }] = (await runner.query('SELECT pg_backend_pid() AS pid')) as [{ pid: number }]

  let standing: 'ready' | 'running' | 'ended' = 'ended'
  let step = ''
  let isInTransaction = false
  let open: () => void = () => undefined
  let settled: PromiseSettledResult<Result> | null = null
  let rewrite: Rewrite = (_, statement) => statement

  function pause(name: string): Promise<void> {
    standing = 'ready'
    step = name
    return new Promise((resolve) => {
      open = resolve
      onChange()
    })
  }

  const send = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>
  async function query(first: string | SentStatement, values?: unknown[]): Promise<unknown> {
    const statement = typeof first === 'string' ? { text: first, values: values ?? [] } : first
    const name = stepOf(statement.text)
    if (name === null) return send(first, values)
    await pause(name)
    isInTransaction = name !== 'commit' && name !== 'rollback'
    const sent = rewrite(name, statement)
    // A changed text needs a plan of its own.
    return sent === statement ? send(first, values) : send(sent.text, sent.values)
  }
  Object.assign(client, { query })

  function end(result: PromiseSettledResult<Result>): void {
    settled = result
    standing = 'ended'
    step = ''
    onChange()
  }

  return {
    pid,
    standing: () => standing,
    step: () => step,
    isInTransaction: () => isInTransaction,
    begin(work, rewriting) {
      rewrite = rewriting
      settled = null
      standing = 'running'
      work(poolOf(dataSource, runner.manager)).then(
        (value) => end({ status: 'fulfilled', value }),
        (reason: unknown) => end({ status: 'rejected', reason }),
      )
    },
    go() {
      standing = 'running'
      open()
    },
    ended() {
      if (settled === null) throw new Error('the session has not ended')
      return settled
    },
    async close() {
      await runner.release()
      await dataSource.destroy()
    },
  }
}

/** A data source that uses one connection for everything. */
function poolOf(dataSource: DataSource, manager: EntityManager): DataSource {
  const runner = manager.queryRunner!
  const kept = Object.create(runner, { release: { value: () => Promise.resolve() } }) as typeof runner
  return Object.create(dataSource, {
    manager: { value: manager },
    query: { value: (text: string, values?: unknown[]) => runner.query(text, values) },
    getRepository: { value: manager.getRepository.bind(manager) },
    transaction: { value: <T>(work: (inner: EntityManager) => Promise<T>) => manager.transaction(work) },
    createQueryRunner: { value: () => kept },
  }) as DataSource
}

import type { EntityManager } from 'typeorm'
import { Registry } from 'prom-client'
import { closeDataSource, createDataSource } from '../../../src/db/connection/data-source.ts'
import { createDefine } from '../../../src/observability/metrics/define.ts'
import { createRelayMetrics } from '../../../src/observability/metrics/relay.ts'
import type { PublishRow } from '../../../src/relay/publish-row.ts'
import { createRelay, type Relay } from '../../../src/relay/relay.ts'
import { createShutdown } from '../../../src/shutdown.ts'
import { outboxSql } from '../../../src/relay/outbox.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'

/** What a platform inserts; the rest of the row has its defaults. */
type Inserted = {
  organisation_id: string
  event?: string
  data?: string
  trace_id?: string
  span_id?: string
  triggered_by?: object
  created_at?: string
  retry_at?: string
}

/** A row of the outbox, as a test compares it. */
type ReadRow = {
  id: string
  organisation_id: string
  attempts: number
  error: string | null
  retry_at: Date | null
  parked_at: Date | null
  published_at: Date | null
}

/** A platform's own database with an outbox. */
export type Outbox = TestDatabase & {
  /** Inserts and commits rows in one transaction; returns their ids. */
  insert(...rows: Inserted[]): Promise<string[]>
  rows(): Promise<ReadRow[]>
}

export async function createOutbox(): Promise<Outbox> {
  const database = await createTestDatabase('template1')
  const { dataSource } = database
  await dataSource.query(outboxSql())
  return {
    ...database,
    insert: (...rows) =>
      dataSource.transaction(async (manager) => {
        const ids: string[] = []
        for (const row of rows) ids.push(await insertRow(manager, row))
        return ids
      }),
    rows: () => dataSource.query<ReadRow[]>('SELECT * FROM posthorn_outbox ORDER BY id'),
  }
}

async function insertRow(manager: EntityManager, row: Inserted): Promise<string> {
  const { event = 'customer:created', data = '{"id":"cus_1"}', ...given } = row
  const columns = Object.entries({ event, data, ...given })
  const names = columns.map(([name]) => name).join(', ')
  const places = columns.map((_, index) => `$${index + 1}`).join(', ')
  const [inserted] = await manager.query<{ id: string }[]>(
    `INSERT INTO posthorn_outbox (${names}) VALUES (${places}) RETURNING id`,
    columns.map(([, value]) => value),
  )
  return inserted!.id
}

/** A relay in this process, and what it logs. */
export type TestRelay = Relay & { logged: (event: string) => Record<string, unknown>[] }

export async function startTestRelay(
  outbox: Outbox,
  options: { publishRow: PublishRow; keepHours?: number; databaseUrl?: string },
): Promise<TestRelay> {
  const { publishRow, keepHours = 0, databaseUrl = outbox.url } = options
  const lines: Record<string, unknown>[] = []
  const note = (fields: object): void => void lines.push(fields as Record<string, unknown>)
  const dataSource = await createDataSource({ url: databaseUrl, poolSize: 4 }).initialize()
  const shutdown = createShutdown(1_000)
  const relay = createRelay({
    dataSource,
    databaseUrl,
    publishRow,
    keepHours,
    logger: { info: note, warn: note, error: note },
    metrics: createRelayMetrics(createDefine(new Registry())),
    shutdown,
  })
  relay.start()
  return {
    ...relay,
    logged: (event) => lines.filter((line) => line['event'] === event),
    async stop() {
      shutdown.begin()
      await relay.stop()
      await closeDataSource(dataSource)
    },
  }
}

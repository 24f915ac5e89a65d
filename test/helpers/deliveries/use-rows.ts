import { randomUUID } from 'node:crypto'
import { type Claim, claimAttempts } from '../../../src/deliveries/protocol/claim.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import {
  type AttemptRecord,
  type FailedAttempt,
  type RecordedFailure,
  type RecordedSuccess,
  recordFailures,
  recordFirstSuccesses,
  recordSuccesses,
} from '../../../src/deliveries/protocol/record-attempts.ts'
import { type TestDatabase, useDatabase } from '../database/database.ts'
import { createMember, createWebhookRow, publishRow } from '../database/factories.ts'
import { type RowState, setRow } from './set-row.ts'
import { findUnstarted } from '../../../src/db/queries/due-deliveries.ts'

/** A row of `delivery` as PostgreSQL has it. */
export type DeliveryColumns = {
  state: string
  stop_reason: string | null
  attempts: number
  runs: number
  owner: string | null
  lease_until: Date | null
  retry_requested: boolean
  attempt_requested: boolean
  next_attempt_at: Date | null
  sweep_at: Date | null
  workflow_started_at: Date | null
  completed_at: Date | null
  paused_since: Date | null
}

/** A webhook in an organisation of its own. */
export type OwnWebhook = { organisationId: string; webhookId: string }

/** What the statements of the protocol do to rows; each by one call of the code that sends it. */
export type RowSuite = {
  readonly database: TestDatabase
  webhook: (options?: { subscribedEventKeys?: string[] }) => Promise<OwnWebhook>
  /** Commits one event in the organisation of a webhook, by default a new one. Returns its only delivery. */
  publish: (webhook?: OwnWebhook, options?: Parameters<typeof publishRow>[2]) => Promise<CommittedDelivery>
  /** Commits one event, and puts its delivery into a state. */
  deliveryIn: (to: RowState, webhook?: OwnWebhook) => Promise<CommittedDelivery>
  row: (delivery: Pick<CommittedDelivery, 'deliveryId'>) => Promise<DeliveryColumns>
  attemptsOf: (delivery: Pick<CommittedDelivery, 'deliveryId'>) => Promise<Record<string, unknown>[]>
  /** Makes changes to a webhook that no statement of the protocol makes. */
  change: (webhookId: string, assignments: string) => Promise<unknown>
  claim: (
    delivery: CommittedDelivery,
    run?: { number?: number; owner?: string; isWorkflow?: boolean; leaseMs?: number },
  ) => Promise<Claim | null>
  succeedFirst: (delivery: CommittedDelivery, changes?: Partial<AttemptRecord>) => Promise<boolean>
  succeed: (
    delivery: CommittedDelivery,
    changes?: Partial<AttemptRecord>,
    followAfterMs?: number | null,
  ) => Promise<RecordedSuccess | null>
  fail: (
    delivery: CommittedDelivery,
    changes: Pick<FailedAttempt, 'owner'> & Partial<FailedAttempt>,
    followAfterMs?: number | null,
  ) => Promise<RecordedFailure | null>
}

/** A failed attempt that is followed by another in a second. */
const FAILED = {
  failureCode: 'timeout',
  statusCode: null,
  error: 'No answer.',
  response: null,
  next: 'waiting',
  dueInMs: 1_000,
} as const

/** A database for the `describe` it is called in, and the statements of the protocol on it. */
export function useRows(): RowSuite {
  const database = useDatabase()
  const query = <Row>(sql: string, ...parameters: unknown[]): Promise<Row[]> =>
    database.dataSource.query<Row[]>(sql, parameters)
  const record = (delivery: CommittedDelivery, changes: Partial<AttemptRecord> = {}): AttemptRecord =>
    attemptRecord(delivery, { owner: randomUUID(), ...changes })
  const suite: RowSuite = {
    database,
    async webhook(options = {}) {
      const { organisationId } = await createMember(database.dataSource)
      const url = 'https://receiver.example.com/'
      const { id } = await createWebhookRow(database.dataSource, { organisationId, url, ...options })
      return { organisationId, webhookId: id }
    },
    async publish(given, options) {
      const { organisationId } = given ?? (await suite.webhook())
      return (await publishRow(database.dataSource, organisationId, options))[0]!
    },
    async deliveryIn(to, webhook) {
      const delivery = await suite.publish(webhook)
      await setRow(database.dataSource, delivery.deliveryId, to)
      return delivery
    },
    row: async ({ deliveryId }) =>
      (await query<DeliveryColumns>('SELECT * FROM delivery WHERE id = $1', deliveryId))[0]!,
    attemptsOf: ({ deliveryId }) =>
      query('SELECT * FROM attempt WHERE delivery_id = $1 ORDER BY number', deliveryId),
    change: (webhookId, assignments) => query(`UPDATE webhook SET ${assignments} WHERE id = $1`, webhookId),
    async claim({ organisationId, deliveryId }, run = {}) {
      const { number = 1, owner = randomUUID(), isWorkflow = false, leaseMs = 60_000 } = run
      const runs = [{ organisationId, deliveryId, number, owner, isWorkflow }]
      return (await claimAttempts(database.dataSource, runs, leaseMs))[0] ?? null
    },
    async succeedFirst(delivery, changes) {
      return (await recordFirstSuccesses(database.dataSource, [record(delivery, changes)], null))[0]!
    },
    async succeed(delivery, changes, followAfterMs = null) {
      return (await recordSuccesses(database.dataSource, [record(delivery, changes)], followAfterMs))[0]!
    },
    async fail(delivery, changes, followAfterMs = null) {
      const attempt = { ...record(delivery), ...FAILED, ...changes }
      return (await recordFailures(database.dataSource, [attempt], followAfterMs))[0]!
    },
  }
  return suite
}

/** What is recorded for the first attempt of a delivery that its endpoint answered with 204, but for `changes`. */
export function attemptRecord(
  { deliveryId, organisationId, url }: Pick<CommittedDelivery, 'deliveryId' | 'organisationId' | 'url'>,
  changes: Pick<AttemptRecord, 'owner'> & Partial<AttemptRecord>,
): AttemptRecord {
  return {
    deliveryId,
    organisationId,
    number: 1,
    trigger: 'schedule',
    url,
    startedAt: new Date('2026-01-02T03:04:05.678Z'),
    durationMs: 12,
    failureCode: null,
    statusCode: 204,
    error: null,
    response: { headers: { 'content-type': 'text/plain' }, body: 'ok', truncated: false },
    ...changes,
  }
}

const EVERY_ROW = { limit: 1_000, defaultRoom: 1_000, rooms: [] }

export const idsOf = (rows: readonly { deliveryId: string }[]): string[] =>
  rows.map(({ deliveryId }) => deliveryId)

/** A database that is empty before each test, and what the sweeper reads in it. */
export function useDueRows() {
  const suite = useRows()
  const { database } = suite
  beforeEach(() => database.dataSource.query('TRUNCATE delivery CASCADE'))
  /** So many deliveries of the webhook, due for the sweeper one after the other; the first since `sinceMs`. */
  async function due(
    webhook: OwnWebhook,
    count: number,
    { to = { state: 'pending' }, sinceMs = 60_000 }: { to?: RowState; sinceMs?: number } = {},
  ): Promise<CommittedDelivery[]> {
    const deliveries: CommittedDelivery[] = []
    for (let index = 0; index < count; index++)
      deliveries.push(await suite.deliveryIn({ ...to, sweepInMs: index * 10 - sinceMs }, webhook))
    return deliveries
  }
  const unstarted = (options: Partial<Parameters<typeof findUnstarted>[1]> = {}) =>
    findUnstarted(database.dataSource, { ...EVERY_ROW, ...options })
  return { ...suite, due, unstarted }
}

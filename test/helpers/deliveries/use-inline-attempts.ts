import type { DataSource } from 'typeorm'
import { findWebhook, lockWebhook, updateWebhook } from '../../../src/db/queries/webhooks.ts'
import {
  type AttemptDependencies,
  type MakeAttempt,
  type OnAttempt,
  createAttempt,
} from '../../../src/deliveries/attempt/make-attempt.ts'
import { createEndpoints, type Endpoints } from '../../../src/deliveries/attempt/endpoint-concurrency.ts'
import { createRecordFirstSuccess } from '../../../src/deliveries/attempt/record-outcome.ts'
import { createRecordUnderLock } from '../../../src/deliveries/attempt/record-under-lock.ts'
import type {
  Dispatcher,
  FirstAttemptMode,
  createDispatcher,
} from '../../../src/deliveries/dispatch/dispatcher.ts'
import { createWebhookChanges, type WebhookChanges } from '../../../src/webhooks/webhook-locks.ts'
import { claimLeaseMs } from '../../../src/deliveries/protocol/claim.ts'
import { stopUnwanted } from '../../../src/deliveries/protocol/change-deliveries.ts'
import {
  commitEvents,
  type CommittedDelivery,
  type Reservation,
} from '../../../src/deliveries/protocol/commit-events.ts'
import { createSweeper, type Sweeper } from '../../../src/deliveries/recovery/sweeper.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { createShutdown, type Shutdown } from '../../../src/shutdown.ts'
import { attemptDependencies } from './attempts.ts'
import { type TestDatabase, useDatabase } from '../database/database.ts'
import { createMember, createWebhookRow, testEvent } from '../database/factories.ts'
import { createFakeTemporal, type FakeTemporal } from '../temporal/fake-temporal.ts'
import { type Answer, createReceiver, type Receiver } from '../receivers/receiver.ts'
import { createTestDispatcher, testRows } from './dispatcher.ts'
import type { DeliveryColumns } from './use-rows.ts'

/** An organisation of its own with one webhook, and the receiver of that webhook. */
export type TestEndpoint = {
  organisationId: string
  webhookId: string
  receiver: Receiver
  /** How the receiver answers from now on. */
  answerWith(answer: Answer): void
  /** So many events in one commit, as `reserved`; by default their deliveries are pending, without an owner. */
  commit(count: number, reserved?: Reservation): Promise<CommittedDelivery[]>
  /** Disables the webhook and stops what waits, as the API does. */
  switchOff(): Promise<void>
  moveTo(url: string): Promise<void>
}

/** Of the events that {@link TestEndpoint} commits. */
export const audienceOf = ({ organisationId }: Pick<TestEndpoint, 'organisationId'>) =>
  ({ organisationId, key: 'customer:created', webhookId: null }) as const

type ProcessOptions = {
  mode?: FirstAttemptMode
  attemptTimeoutMs?: number
  attempts?: Partial<AttemptDependencies>
  dispatcher?: Partial<Omit<Parameters<typeof createDispatcher>[0], 'shutdown'>>
  /** Begun by the `stop` of its dispatcher; with 50 ms of grace if not given. */
  shutdown?: Shutdown
  /** Sees what the dispatcher asks of an attempt. */
  watching?: (make: MakeAttempt) => MakeAttempt
}

/** What one process has: its dispatcher, its sweeper, and what it sees of webhooks. Neither polls by itself. */
type TestProcess = Pick<AttemptDependencies, 'endpoints'> & {
  webhookChanges: WebhookChanges
  dispatcher: Dispatcher
  sweep: Sweeper
  /** Reports the ends of attempts that workflows requested of this process. */
  endAttempts: (deliveries: readonly { deliveryId: string; webhookId: string }[]) => void
  /** Commits so many events, and begins their deliveries. */
  publish: (endpoint: TestEndpoint, count?: number) => Promise<CommittedDelivery[]>
}

type InlineSuite = {
  database: TestDatabase
  /** New for each test, and shared by its processes. */
  temporal: FakeTemporal
  endpoint(answer?: Answer): Promise<TestEndpoint>
  process(options?: ProcessOptions): TestProcess
  row(deliveryId: string): Promise<DeliveryColumns>
  attemptsOf(deliveryId: string): Promise<Record<string, unknown>[]>
  /** How many deliveries of all are in a state that `condition` describes. */
  count(condition: string): Promise<number>
  /** As if the time of its lease, and that until it is swept, were over. */
  age(deliveryId: string): Promise<unknown>
}

/** Room for so many deliveries of a webhook; what is committed without room is pending, for any process. */
export const reservationOf = (room: number): Reservation => ({
  rooms: { inAll: 1_000, defaultRoom: room, webhooks: [] },
  sweepAfterMs: 0,
  settle: () => undefined,
})

/** Processes with real attempts on a real database, and a Temporal that only notes; all end with each test. */
export function useInlineAttempts(): InlineSuite {
  const database = useDatabase()
  let closing: (() => Promise<unknown>)[] = []
  const query = <Row>(sql: string, ...parameters: unknown[]): Promise<Row[]> =>
    database.dataSource.query<Row[]>(sql, parameters)
  const suite: InlineSuite = {
    database,
    temporal: createFakeTemporal(),
    async endpoint(answer = () => 200) {
      const endpoint = await createEndpoint(database.dataSource, answer)
      closing.push(() => endpoint.receiver.close())
      return endpoint
    },
    process(options = {}) {
      const { close, ...made } = createProcess(database.dataSource, suite.temporal, options)
      closing.push(close)
      return made
    },
    row: async (deliveryId) =>
      (await query<DeliveryColumns>('SELECT * FROM delivery WHERE id = $1', deliveryId))[0]!,
    attemptsOf: (deliveryId) =>
      query('SELECT * FROM attempt WHERE delivery_id = $1 ORDER BY number', deliveryId),
    count: async (condition) =>
      (await query<{ count: number }>(`SELECT count(*)::int AS count FROM delivery WHERE ${condition}`))[0]!
        .count,
    age: (deliveryId) =>
      query(
        `UPDATE delivery SET lease_until = CASE WHEN owner IS NOT NULL THEN delivery_now() - interval '1 ms' END,
                sweep_at = delivery_now() - interval '1 ms' WHERE id = $1`,
        deliveryId,
      ),
  }
  beforeEach(async () => {
    suite.temporal = createFakeTemporal()
    await query('TRUNCATE delivery CASCADE')
  })
  afterEach(async () => {
    // Processes were made after the receivers that they post to.
    for (const close of closing.reverse()) await close()
    closing = []
  })
  return suite
}

async function createEndpoint(dataSource: DataSource, first: Answer): Promise<TestEndpoint> {
  let answer = first
  const receiver = await createReceiver({ answer: (...args) => answer(...args) })
  const { organisationId } = await createMember(dataSource)
  const { id: webhookId } = await createWebhookRow(dataSource, { organisationId, url: receiver.url })
  return {
    organisationId,
    webhookId,
    receiver,
    answerWith(next) {
      answer = next
    },
    async commit(count, reserved = reservationOf(0)) {
      const events = Array.from({ length: count }, () => testEvent(organisationId))
      return (await commitEvents(dataSource, events, { ...reserved, leaseMs: 20_000 })).flat()
    },
    switchOff: () =>
      dataSource.transaction(async (manager) => {
        await lockWebhook(manager, webhookId)
        const webhook = await findWebhook(manager, organisationId, webhookId)
        await updateWebhook(manager, organisationId, { ...webhook!, enabled: false })
        await stopUnwanted(manager, { organisationId, webhookId })
      }),
    async moveTo(url) {
      await dataSource.query('UPDATE webhook SET url = $2 WHERE id = $1', [webhookId, url])
    },
  }
}

/** Endpoints for which no time goes by, so that none is slow, or hangs, because the machine is busy. */
function createQuickEndpoints(): Endpoints {
  return createEndpoints({ maxLimit: 50, runningMs: () => 0 })
}

function createProcess(
  dataSource: DataSource,
  temporal: FakeTemporal,
  options: ProcessOptions,
): TestProcess & { close: () => Promise<unknown> } {
  const { mode = 'direct', attemptTimeoutMs = 15_000, watching = (make: MakeAttempt) => make } = options
  const { shutdown = createShutdown(50) } = options
  const followAfterMs = mode === 'overflow' ? 0 : null
  const locks = createWebhookLocks()
  const attempts = {
    ...attemptDependencies(dataSource, attemptTimeoutMs),
    endpoints: createQuickEndpoints(),
    recordFirstSuccess: createRecordFirstSuccess(dataSource, { followAfterMs }),
    recordUnderLock: createRecordUnderLock({ dataSource, locks, followAfterMs }),
    locks,
    ...options.attempts,
  }
  const webhookChanges = createWebhookChanges()
  const rows = testRows(dataSource, claimLeaseMs(attemptTimeoutMs))
  const common = { ...attempts, workflows: temporal.workflows, rows, webhookChanges }
  let report: OnAttempt = () => undefined
  const dispatcher = createTestDispatcher({
    ...common,
    createAttempt(onAttempt) {
      report = onAttempt
      return watching(createAttempt(attempts, onAttempt))
    },
    mode,
    makesAttempts: true,
    ...options.dispatcher,
    shutdown,
  })
  const sweep = createSweeper({
    ...common,
    retryWorkflows: { start: () => Promise.resolve() },
    erasureWorkflows: { start: () => Promise.resolve() },
    terminateIfStuck: temporal.terminateIfStuck,
    isServing: () => true,
    dispatcher,
  })
  const stop = (): Promise<void> => {
    shutdown.begin()
    return dispatcher.stop()
  }
  return {
    dispatcher: { ...dispatcher, stop },
    sweep,
    endpoints: attempts.endpoints,
    webhookChanges,
    endAttempts: (deliveries) => deliveries.forEach((delivery) => report({ isInline: false, ...delivery })),
    async publish(endpoint, count = 1) {
      const reserved = dispatcher.reserve([audienceOf(endpoint)], count)
      const committed = await endpoint.commit(count, reserved).finally(() => reserved.settle())
      // As if the commit took no time: its claims are good for a second.
      for (const { claim } of committed) if (claim !== null) claim.claimedAtMs = performance.now()
      dispatcher.start(committed)
      return committed
    },
    async close() {
      await sweep.stop()
      await stop()
      await attempts.httpClient.close()
    },
  }
}

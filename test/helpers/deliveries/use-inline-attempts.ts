import type { DataSource } from 'typeorm'
import { insertEventsWithDeliveries, type DeliveryToStart } from '../../../src/db/queries/events.ts'
import { stopDeliveries } from '../../../src/db/queries/stops.ts'
import { findWebhook, lockWebhook, updateWebhook } from '../../../src/db/queries/webhooks.ts'
import type {
  AttemptDependencies,
  AttemptEvent,
  MakeAttempt,
} from '../../../src/deliveries/attempt/attempt-request.ts'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { createRecordFirstSuccess } from '../../../src/deliveries/attempt/record-successes.ts'
import { createRecordUnderLock } from '../../../src/deliveries/attempt/record-under-lock.ts'
import { createWebhookLocks } from '../../../src/incidents/webhook-locks.ts'
import type { FirstAttemptMode } from '../../../src/deliveries/dispatch/route-delivery.ts'
import type { createDispatcher, Dispatcher } from '../../../src/deliveries/dispatch/dispatcher.ts'
import type { WebhookCache } from '../../../src/deliveries/dispatch/webhook-cache.ts'
import { createOverdueAttempts } from '../../../src/deliveries/recovery/overdue-attempts.ts'
import { createSweeper, type Sweeper } from '../../../src/deliveries/recovery/sweeper.ts'
import { newId } from '../../../src/ids.ts'
import { createShutdown, type Shutdown } from '../../../src/shutdown.ts'
import { attemptDependencies } from './attempts.ts'
import type { TestDatabase } from '../database/database.ts'
import { createMember, createWebhookRow, TEST_PROCESS } from '../database/factories.ts'
import { createFakeTemporal, type FakeTemporal } from '../temporal/fake-temporal.ts'
import { createReceiver, type Answer, type Receiver } from '../receivers/receiver.ts'
import { createTestDispatcher, TEST_LEASE_MS } from './dispatcher.ts'
import { useDatabase } from '../database/use-database.ts'

type Lease = { owner?: string; leaseMs?: number }

/** An organisation of its own with one webhook, and the receiver of that webhook. */
type Endpoint = {
  organisationId: string
  webhookId: string
  receiver: Receiver
  /** How the receiver answers from now on. */
  answerWith(answer: Answer): void
  /** So many events in one commit; their deliveries are leased to TEST_PROCESS, unless `lease` overrides that. */
  publish(count: number, lease?: Lease): Promise<DeliveryToStart[]>
  publishOne(lease?: Lease): Promise<DeliveryToStart>
  /** Disables the webhook and stops what waits, as the API does. */
  switchOff(): Promise<void>
  moveTo(url: string): Promise<void>
}

type ProcessOptions = {
  mode?: FirstAttemptMode
  processId?: string
  attemptTimeoutMs?: number
  attempts?: Partial<AttemptDependencies>
  dispatcher?: Partial<Omit<Parameters<typeof createDispatcher>[0], 'shutdown'>>
  /** Begun by the `stop` of its dispatcher; with 50 ms of grace if not given. */
  shutdown?: Shutdown
  /** Sees what the dispatcher asks of an attempt. */
  watching?: (make: MakeAttempt) => MakeAttempt
}

/** What one process has: its dispatcher, its sweep, and what it sees of webhooks. */
type TestProcess = Pick<AttemptDependencies, 'endpoints'> & { webhooks: WebhookCache } & {
  dispatcher: Dispatcher
  sweep: Sweeper
}

type DeliveryColumns = {
  state: string
  attempts: number
  claims: number
  owner: string | null
  lease_until: Date | null
  sweep_at: Date | null
  next_attempt_at: Date | null
  started_at: Date | null
  completed_at: Date | null
  paused_since: Date | null
}

type FirstAttemptsSuite = {
  database: TestDatabase
  /** New for each test, and shared by its processes. */
  temporal: FakeTemporal
  endpoint(answer?: Answer): Promise<Endpoint>
  process(options?: ProcessOptions): TestProcess
  row(deliveryId: string): Promise<DeliveryColumns>
  attemptsOf(deliveryId: string): Promise<Record<string, unknown>[]>
  /** How many deliveries of all are in a state that `condition` describes. */
  count(condition: string): Promise<number>
  /** As if the time of its lease were over. */
  age(deliveryId: string): Promise<unknown>
}

/** Processes with real attempts on a real database, and an temporal that only notes; all end with each test. */
export function useInlineAttempts(): FirstAttemptsSuite {
  const database = useDatabase()
  let closing: (() => Promise<unknown>)[] = []
  const query = <Row>(sql: string, ...parameters: unknown[]): Promise<Row[]> =>
    database.dataSource.query<Row[]>(sql, parameters)
  const suite: FirstAttemptsSuite = {
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
        `UPDATE delivery SET lease_until = now() - interval '1 ms', sweep_at = now() - interval '1 ms' WHERE id = $1`,
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

async function createEndpoint(dataSource: DataSource, first: Answer): Promise<Endpoint> {
  let answer = first
  const receiver = await createReceiver({ answer: (...args) => answer(...args) })
  const { organisationId } = await createMember(dataSource)
  const { id: webhookId } = await createWebhookRow(dataSource, { organisationId, url: receiver.url })
  const publish: Endpoint['publish'] = async (count, { owner = TEST_PROCESS, leaseMs = 60_000 } = {}) => {
    const events = Array.from({ length: count }, (_, index) => ({
      id: newId(),
      organisationId,
      key: 'customer:created',
      body: Buffer.from(`{"event":"customer:created","data":{"id":"cus_${index}"}}`),
      emittedAt: new Date(),
      traceId: 'trace-1',
    }))
    return (await insertEventsWithDeliveries(dataSource, events, { owner, leaseMs })).flat()
  }
  return {
    organisationId,
    webhookId,
    receiver,
    answerWith(next) {
      answer = next
    },
    publish,
    publishOne: async (lease) => (await publish(1, lease))[0]!,
    switchOff: () =>
      dataSource.transaction(async (manager) => {
        await lockWebhook(manager, webhookId)
        const webhook = await findWebhook(manager, organisationId, webhookId)
        await updateWebhook(manager, organisationId, { ...webhook!, enabled: false })
        await stopDeliveries(manager, organisationId, webhookId, 'webhook_disabled')
      }),
    async moveTo(url) {
      await dataSource.query('UPDATE webhook SET url = $2 WHERE id = $1', [webhookId, url])
    },
  }
}

function createProcess(
  dataSource: DataSource,
  temporal: FakeTemporal,
  options: ProcessOptions,
): TestProcess & { close: () => Promise<unknown> } {
  const { mode = 'direct', processId = TEST_PROCESS, attemptTimeoutMs = 3_000, watching } = options
  const { shutdown = createShutdown(50) } = options
  const hasBackfill = mode === 'overflow'
  const locks = createWebhookLocks()
  const attempts = {
    ...attemptDependencies(dataSource, attemptTimeoutMs),
    recordFirstSuccess: createRecordFirstSuccess(dataSource, { hasBackfill }),
    recordUnderLock: createRecordUnderLock({ dataSource, locks, hasBackfill }),
    locks,
    onAttempt: (event: AttemptEvent) => dispatcher.onAttempt(event),
    ...options.attempts,
  }
  const common = { ...attempts, workflows: temporal.workflows, processId }
  const makeAttempt = createAttempt(attempts)
  const dispatcher = createTestDispatcher({
    ...common,
    makeAttempt: watching === undefined ? makeAttempt : watching(makeAttempt),
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
    attemptsInline: mode !== 'workflow',
    overdueAttempts: mode === 'direct' ? createOverdueAttempts({ ...common, makeAttempt, shutdown }) : null,
    dispatcher,
    leaseMs: TEST_LEASE_MS,
  })
  const close = async (): Promise<void> => {
    await sweep.stop()
    await stop()
    await attempts.httpClient.close()
  }
  const stop = (): Promise<void> => {
    shutdown.begin()
    return dispatcher.stop()
  }
  return {
    dispatcher: { ...dispatcher, stop },
    sweep,
    endpoints: attempts.endpoints,
    webhooks: attempts.webhooks,
    close,
  }
}

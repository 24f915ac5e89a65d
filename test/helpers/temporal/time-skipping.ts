import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  Connection,
  type ConnectionPlugin,
  type WorkflowHandle,
  WorkflowNotFoundError,
} from '@temporalio/client'
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { bundleWorkflowCode, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker'
import { freePort } from '../../../src/free-port.ts'
import { startGuardedProcess } from '../../../src/dev/guarded-process.ts'
import type { Activities } from '../../../activities/index.ts'
import { testActivities, type TestDependencies } from '../deliveries/attempts.ts'
import type { DatabaseClock } from '../../../src/db/connection/database-clock.ts'
import { attemptQueue } from '../../../src/domain/attempt-outcome.ts'
import { SEARCH_ATTRIBUTE_NAMES } from '../../../src/temporal/namespace.ts'
import { type DeliveryTime, skipDeliveryTime } from '../database/skip-delivery-time.ts'
import { quietRuntime } from './runtime.ts'
import { eventually } from '../eventually.ts'
import type { History } from './history.ts'
import { testServers } from '../runner/servers.ts'
import {
  createDeliveryWorkflows,
  deliveryWorkflowId,
  type DeliveryWorkflows,
} from '../../../src/temporal/workflows.ts'
import type { DeliverEventResult } from '../../../src/domain/workflow-inputs.ts'

/** `INDEXED_VALUE_TYPE_KEYWORD` of Temporal's API. */
const KEYWORD = 2

let bundle: Promise<WorkflowBundleWithSourceMap> | null = null

/** The workflows as workers get them, bundled once per run. */
export function workflowBundle(): Promise<WorkflowBundleWithSourceMap> {
  const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {} }
  bundle ??= bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../../../workflows/index.ts', import.meta.url)),
    logger: silent,
  })
  return bundle
}

/** The time-skipping server drops connections that ping it for longer than a minute or two, which a busy machine takes. */
const withoutPings: ConnectionPlugin = {
  name: 'without-pings',
  configureConnection: (options) => ({
    ...options,
    channelArgs: { ...options.channelArgs, 'grpc.keepalive_time_ms': 3_600_000 },
  }),
}

/** The SDK's own start of such a server waits five seconds, which a busy machine exceeds. */
const READY_TIMEOUT_MS = 60_000

/** Private in the SDK: its public ways start the server themselves, or skip no time. */
const sdk = TestWorkflowEnvironment as unknown as {
  create(options: {
    server: { type: 'existing' }
    address: string
    supportsTimeSkipping: true
    plugins: ConnectionPlugin[]
  }): Promise<TestWorkflowEnvironment>
}

/** A Temporal server that skips time, with our search attributes. One per test file; await one result at a time. */
async function startTimeSkippingServer(): Promise<{
  environment: TestWorkflowEnvironment
  stop: () => Promise<void>
}> {
  quietRuntime()
  const port = await freePort()
  const address = `127.0.0.1:${port}`
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-time-skipping-'))
  const server = await startGuardedProcess({
    name: 'The time-skipping server',
    command: testServers().timeSkippingServer,
    args: [String(port)],
    stopSignal: 'SIGTERM',
    logFile: join(folder, 'server.log'),
    isReady: () => isServing(address),
    readyTimeoutMs: READY_TIMEOUT_MS,
  })
  const stopServer = async (): Promise<void> => {
    await server.stop()
    rmSync(folder, { recursive: true })
  }
  try {
    const existing = { server: { type: 'existing' }, supportsTimeSkipping: true } as const
    const environment = await sdk.create({ ...existing, address, plugins: [withoutPings] })
    await addSearchAttributes(environment)
    return { environment, stop: () => environment.teardown().then(stopServer) }
  } catch (error) {
    await stopServer()
    throw error
  }
}

async function addSearchAttributes(environment: TestWorkflowEnvironment): Promise<void> {
  await environment.connection.operatorService.addSearchAttributes({
    namespace: 'default',
    searchAttributes: Object.fromEntries(SEARCH_ATTRIBUTE_NAMES.map((name) => [name, KEYWORD])),
  })
}

async function isServing(address: string): Promise<boolean> {
  const connection = Connection.lazy({ address, connectTimeout: 1_000, plugins: [withoutPings] })
  // Also where it fails: what is left open goes on to connect, and pings.
  await connection.ensureConnected().finally(() => connection.close())
  return true
}

/**
 * Runs `work` while a worker with the real activities serves a task queue of its own. Its clock, by which the database
 * refuses claims, follows the server's, and is given to `work`.
 */
async function withWorker<T>(
  environment: TestWorkflowEnvironment,
  dependencies: TestDependencies,
  work: (taskQueue: string, clock: DatabaseClock) => Promise<T>,
): Promise<T> {
  const taskQueue = `test-${randomUUID()}`
  const connection = environment.nativeConnection
  const clock = await skipDeliveryTime(dependencies.dataSource, environment)
  await clock.follow()
  const activities = inSkippedTime(clock, dependencies)
  const create = (queue: 'retry' | 'slow'): Promise<Worker> =>
    Worker.create({ connection, taskQueue: attemptQueue(taskQueue, queue), activities })
  const [retry, slow] = [await create('retry'), await create('slow')]
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowBundle: await workflowBundle(),
    activities,
    // In this thread: to start another takes longer than most tests.
    debugMode: true,
    // A bug of ours fails the test instead of being tried again for ever.
    workflowFailureErrorTypes: { '*': ['Error'] },
  })
  return slow.runUntil(() => retry.runUntil(() => worker.runUntil(() => work(taskQueue, clock))))
}

/** Returns the activities; those that act on a delivery's instants set the clock first. */
function inSkippedTime(clock: DeliveryTime, dependencies: TestDependencies): Activities {
  const activities = testActivities({ ...dependencies, clock })
  return {
    ...activities,
    makeAttempt: async (request) => clock.follow().then(() => activities.makeAttempt(request)),
    requestRetry: async (request) => clock.follow().then(() => activities.requestRetry(request)),
  }
}

/**
 * Terminates a workflow that may run, once it rests on a timer: after one that ends with a task or an activity under
 * way, this server never skips time again.
 */
export async function terminateAtRest(handle: WorkflowHandle): Promise<void> {
  await eventually(async () => {
    const { status } = await handle.describe()
    if (status.name === 'RUNNING' && !isAtRest(await handle.fetchHistory()))
      throw new Error('a task is under way')
  })
  await handle.terminate('by hand').catch((error: unknown) => {
    if (!(error instanceof WorkflowNotFoundError)) throw error
  })
}

/** Whether the last that was begun in it has ended: a completed task schedules its activities behind it. */
function isAtRest({ events }: History): boolean {
  const last = (events ?? []).findLast(
    (event) =>
      event.workflowTaskScheduledEventAttributes ??
      event.workflowTaskStartedEventAttributes ??
      event.workflowTaskCompletedEventAttributes ??
      event.activityTaskScheduledEventAttributes ??
      event.activityTaskStartedEventAttributes,
  )
  return Boolean(last?.workflowTaskCompletedEventAttributes)
}

/** What the tests of one `describe` about workflows share; filled before the first of them. */
export type TestTemporal = {
  /** Its server skips time. Await one result at a time. */
  readonly environment: TestWorkflowEnvironment
  /**
   * Runs `work` while workers with the real activities serve a task queue of its own. `leadMs` is that of the workflows,
   * 0 if not given; `clock` is that of the activities and of the rows.
   */
  withWorkflows: <T>(
    dependencies: TestDependencies,
    work: (workflows: DeliveryWorkflows, taskQueue: string, clock: DatabaseClock) => Promise<T>,
    options?: { leadMs: number },
  ) => Promise<T>
  /** Returns the handle of a delivery's workflow. */
  handleOf: (deliveryId: string) => WorkflowHandle
  /** Waits for the end of a delivery's workflow. */
  resultOf: (deliveryId: string) => Promise<DeliverEventResult>
}

/** Starts a time-skipping Temporal server for the `describe` it is called in, and stops it after its tests. */
export function useTemporal(): TestTemporal {
  const client = () => temporal.environment.client
  const temporal = {
    withWorkflows: (dependencies, work, { leadMs } = { leadMs: 0 }) =>
      withWorker(temporal.environment, dependencies, (taskQueue, clock) =>
        work(createDeliveryWorkflows({ client, taskQueue, leadMs, eager: false }), taskQueue, clock),
      ),
    handleOf: (deliveryId) => client().workflow.getHandle(deliveryWorkflowId(deliveryId)),
    resultOf: (deliveryId) => temporal.handleOf(deliveryId).result() as Promise<DeliverEventResult>,
  } as TestTemporal
  let stop = (): Promise<void> => Promise.resolve()
  before(async () => {
    const server = await startTimeSkippingServer()
    stop = server.stop
    Object.assign(temporal, { environment: server.environment })
  })
  after(() => stop())
  return temporal
}

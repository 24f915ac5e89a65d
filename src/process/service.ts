import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'
import { createActivities } from '../../activities/index.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { createPayloadThreads } from '../catalogue/payload-threads.ts'
import type { Config } from '../config/load.ts'
import { closeDataSource } from '../db/connection/data-source.ts'
import { createEndpoints } from '../deliveries/attempt/endpoint-registry.ts'
import { createPace, TIMEOUT_INTERVAL_MS } from '../deliveries/attempt/pace.ts'
import { createRunningClock } from '../timers.ts'
import type { AttemptEvent } from '../deliveries/attempt/attempt-request.ts'
import { createRecordFirstSuccess } from '../deliveries/attempt/record-outcome.ts'
import { createRecordUnderLock } from '../deliveries/attempt/record-under-lock.ts'
import { createWebhookLocks } from '../webhooks/webhook-locks.ts'
import { createWebhookChanges } from '../webhooks/webhook-changes.ts'
import { sweepEverything } from '../deliveries/recovery/sweep-everything.ts'
import { createPositions } from '../stream/positions.ts'
import { createStreams } from '../stream/streams.ts'
import { createApp } from '../http/app.ts'
import type { Logger } from '../observability/logger.ts'
import { createHttpClient } from '../outbound/http-client.ts'
import { assertGuardWorks } from '../outbound/self-test.ts'
import { createSecretBox } from '../secret-box.ts'
import { createDeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import { readTemporalCredentials } from './temporal-credentials.ts'
import { createTemporalService } from '../temporal/temporal-service.ts'
import { createIncidentWorkflows } from '../temporal/incident-workflows.ts'
import { ensureRetentionSchedule } from '../temporal/retention-schedule.ts'
import { createErasureWorkflows } from '../temporal/erasure-workflows.ts'
import { createRetryWorkflows } from '../temporal/retry-workflows.ts'
import { createWorkers } from '../temporal/worker.ts'
import type { Shutdown } from '../shutdown.ts'
import { createWorkflowTermination } from '../temporal/workflow-termination.ts'
import { createTerminateIfStuck } from '../temporal/workflow-progress.ts'
import { createAuthentication } from './authentication.ts'
import { createDispatch, createPublishing, type Roles } from './dispatch.ts'
import { createMetering } from './metering.ts'
import { createNotifications } from './notifications.ts'
import { assertKeyRing } from './assert-key-ring.ts'
import { listenInWords } from './listen-in-words.ts'
import { onUnexpectedError } from './on-unexpected-error.ts'
import { warnOfMissingKeys } from './missing-keys.ts'
import { openDatabase, startDatabaseClock } from './open-database.ts'
import {
  httpClientSettings,
  retentionLimits,
  temporalUi,
  warnOfOpenPolicy,
  webhookLimit,
  workerSettings,
} from './service-settings.ts'
import type { Stack } from './shutdown-stack.ts'

/** A timer of Temporal fires a little late, so a retry goes to a worker ahead of its due time (ADR 0009). */
const RETRY_LEAD_MS = 1_000

/** Open event streams, half of them of one API key at most, and open connections: beyond them only probes are answered. */
const STREAMS_PER_PROCESS = 2_000
const API_CONNECTIONS = 5_000

const API_LISTENER = { what: 'API', hostVariable: 'HOST', portVariable: 'PORT' }

export type Service = {
  /** Address of the API; null in a worker. */
  url: string | null
  /** Address of the metrics; null when they are off. */
  metricsUrl: string | null
  temporal: { isUp(): Promise<boolean> }
}

/** What a composition root provides: the log, the stack of started parts, and the shutdown. */
export type ServiceHost = {
  catalogue: Catalogue
  logger: Logger
  running: Stack
  shutdown: Shutdown
  /** Stops the process cleanly after an uncaught error. */
  end: (reason: string) => void
  /** Pages that development adds to the API. */
  pages?: readonly Middleware[]
}

/**
 * Builds a process from its configuration and starts it. Started parts go onto `running`, which the caller stops after
 * it has begun the shutdown: requests are refused, attempts in flight finish, and unstarted deliveries are released.
 * Throws when the database is unavailable or the port is taken.
 */
export async function startService(config: Config, roles: Roles, host: ServiceHost): Promise<Service> {
  const { catalogue, logger, running, shutdown, pages } = host
  const processId = randomUUID()
  warnOfOpenPolicy(config, logger)
  await assertGuardWorks()
  const metering = await createMetering(config, logger)
  const { metrics } = metering
  onUnexpectedError({ logger, metrics, end: host.end })
  const dataSource = await openDatabase(config, logger)
  running.push('the database', () => closeDataSource(dataSource))
  const clock = await startDatabaseClock(dataSource, logger, running)
  const secretBox = createSecretBox(config.encryptionKeys)
  await assertKeyRing(dataSource, secretBox)
  await warnOfMissingKeys(dataSource, catalogue, logger)
  const httpClient = createHttpClient({
    ...httpClientSettings(config),
    stopping: shutdown.stopping,
    nowMs: () => clock.nowMs(),
  })
  const notifications = createNotifications(config, httpClient, logger)
  if (roles.worker) notifications.warnOfMissingChannels()
  const client = () => temporal.client()
  const taskQueue = config.temporalTaskQueue
  const workflows = createDeliveryWorkflows({
    client,
    taskQueue,
    leadMs: RETRY_LEAD_MS,
    // Temporal decides which version runs a workflow, so a process does not begin its own.
    eager: roles.worker && config.temporalBuildId === '',
    clock,
  })
  const retryWorkflows = createRetryWorkflows({ client, taskQueue })
  const erasureWorkflows = createErasureWorkflows({ client, taskQueue })
  const notifyAfterMs = config.notifyAfterSeconds * 1_000
  const incidentWorkflows = createIncidentWorkflows({ client, taskQueue, notifyAfterMs })
  // Only there a delivery that the process completed is to have a workflow too.
  const followAfterMs = config.firstAttempt === 'overflow' ? 0 : null
  const locks = createWebhookLocks(config.databasePoolSize)
  const attempts = {
    dataSource,
    clock,
    httpClient,
    secretBox,
    logger,
    metrics,
    workflows,
    incidentWorkflows,
    webhookChanges: createWebhookChanges(),
    onAttempt: (event: AttemptEvent) => dispatcher.onAttempt(event),
    recordFirstSuccess: createRecordFirstSuccess(dataSource, { followAfterMs }),
    recordUnderLock: createRecordUnderLock({ dataSource, locks, followAfterMs }),
    locks,
    attemptTimeoutMs: config.attemptTimeoutMs,
    endpoints: createEndpoints({ maxLimit: config.webhookConcurrency, runningMs: createRunningClock() }),
    timeoutPace: createPace({ intervalMs: TIMEOUT_INTERVAL_MS }),
  }
  const activities = createActivities({
    ...attempts,
    termination: createWorkflowTermination(client),
    shutdown,
    channels: notifications.channels,
    webhookConcurrency: config.webhookConcurrency,
  })
  const temporal = createTemporalService({
    address: config.temporalAddress,
    namespace: config.temporalNamespace,
    credentials: readTemporalCredentials(config),
    logger,
    createWorkers: roles.worker
      ? (connection) => createWorkers(connection, workerSettings(config), activities)
      : null,
    onConnected: roles.worker
      ? (temporal, isNew) =>
          ensureRetentionSchedule(temporal, { taskQueue, limits: retentionLimits(config), isNew })
      : null,
    onDataLost: roles.worker ? () => sweepEverything(dataSource) : null,
  })
  const { commits, dispatcher, sweep, following } = createDispatch(config, roles, {
    ...attempts,
    retryWorkflows,
    erasureWorkflows,
    terminateIfStuck: createTerminateIfStuck(client),
    isServing: () => temporal.isServing(),
    shutdown,
  })
  const positions = createPositions(config.encryptionKeys)
  const limits = { perKey: STREAMS_PER_PROCESS / 2, perProcess: STREAMS_PER_PROCESS }
  const streams = createStreams({ dataSource, catalogue, positions, logger, metrics, limits })
  const api = {
    dataSource,
    ...createAuthentication(dataSource, config, { logger, metrics }),
    secretBox,
    publish: createPublishing(dataSource, config, { commits, logger }),
    commits,
    webhooks: attempts.webhookChanges,
    locks: attempts.locks,
    sweep: roles.worker ? sweep : null,
    stopping: shutdown.stopping,
    streams,
    dispatcher,
    workflows,
    retryWorkflows,
    incidentWorkflows,
    erasureWorkflows,
    urlPolicy: { allowHttp: config.allowHttp, allowedCidrs: config.allowedCidrs },
    trustedProxies: config.trustedProxies,
    webhooksPerOrganisation: webhookLimit(config, logger),
    catalogue,
    payloadThreads: createPayloadThreads(catalogue.eventKeys),
    vapidPublicKey: notifications.vapidPublicKey,
    publicUrl: config.publicUrl,
    frameAncestors: config.frameAncestors,
    temporalUi: temporalUi(config),
    temporal,
    logger,
    metrics,
  }
  const app = createApp(api, pages)
  const metricsUrl = await metering.serve(api, running)
  // Last what works by itself: a port that is taken must end the process before anything is delivered.
  const listening = roles.api
    ? await listenInWords(API_LISTENER, app, {
        host: config.host,
        port: config.port,
        maxConnections: API_CONNECTIONS,
        trustedProxies: config.trustedProxies,
        onRefused: () => metrics.connectionRefused(),
      })
    : null
  running.push('the HTTP client', () => httpClient.close())
  running.push('Temporal', () => temporal.stop())
  // Receivers have confirmed some of them: a process that ends with them makes their attempts again elsewhere.
  running.push('the last outcomes', () => attempts.endpoints.recorded())
  // Again, for what requests and the sweep brought while they ended.
  running.push('the last deliveries', () => dispatcher.stop())
  // All share one grace period: attempts in flight finish, and unstarted deliveries are released at once.
  running.pushTogether({
    // It waits for streams that end in good order, and cuts off what takes too long.
    'the API': () => Promise.all([streams.close(), listening?.close()]),
    'the sweep': () => sweep.stop(),
    'the workflows that follow': () => following.stop(),
    'the dispatcher': () => dispatcher.stop(),
    'the workers': () => temporal.stopWorking(),
    // Mails of which nothing has left yet are given back, and the workers need not wait for them.
    'the mail connections': () => notifications.close(),
  })
  temporal.start()
  if (roles.worker) {
    dispatcher.begin()
    sweep.start()
    following.start()
  }
  const urls = { url: listening?.url ?? null, metricsUrl }
  logger.info({ event: 'service.started', processId, roles, ...urls }, 'service.started')
  return { ...urls, temporal }
}

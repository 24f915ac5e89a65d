import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'
import { createActivities } from '../../activities/index.ts'
import { createPayloadValidator } from '../catalogue/payload-validator.ts'
import type { Config } from '../config.ts'
import { closeDataSource } from '../db/data-source.ts'
import { transactLonger } from '../db/longer-statements.ts'
import { countPending } from '../db/queries/backlog.ts'
import { sweepEverything } from '../db/queries/recovery.ts'
import { createEndpoints } from '../deliveries/attempt/endpoints.ts'
import { createPace, TIMEOUT_INTERVAL_MS } from '../deliveries/attempt/pace.ts'
import { createRunningClock } from '../deliveries/attempt/running-clock.ts'
import type { AttemptEvent } from '../deliveries/attempt/attempt-request.ts'
import { createRecordFirstSuccess } from '../deliveries/attempt/record-first-successes.ts'
import { createWebhookLocks } from '../incidents/webhook-locks.ts'
import { createWebhookCache } from '../deliveries/dispatch/webhook-cache.ts'
import { createBacklogLimit } from '../events/backlog-limit.ts'
import { createPublisher } from '../events/publish.ts'
import { createStreams } from '../events/streams.ts'
import { createApp } from '../http/app.ts'
import { listen } from '../http/listen.ts'
import type { Logger } from '../logger.ts'
import { createHttpClient } from '../outbound/http-client.ts'
import { assertGuardWorks } from '../outbound/self-test.ts'
import { createSecretBox } from '../secret-box.ts'
import { createDeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import { createEngine } from '../temporal/engine.ts'
import { createIncidentWorkflows } from '../temporal/incident-workflows.ts'
import { ensureRetentionSchedule } from '../temporal/retention-schedule.ts'
import { createRetryWorkflows } from '../temporal/retry-workflows.ts'
import { createWorkers } from '../temporal/worker.ts'
import type { Shutdown } from '../shutdown.ts'
import { createTerminateIfStuck } from '../temporal/workflow-progress.ts'
import { createAuthentication } from './authentication.ts'
import { createDispatch } from './dispatch.ts'
import { createMetering } from './metrics.ts'
import { createNotifications } from './notifications.ts'
import { assertKeyRing } from './assert-key-ring.ts'
import { onUnexpectedError } from './on-unexpected-error.ts'
import { openDatabase, startDatabaseClock } from './open-database.ts'
import {
  httpClientSettings,
  retentionLimits,
  temporalUi,
  warnOfOpenPolicy,
  workerSettings,
} from './service-settings.ts'
import type { Stack } from './stack.ts'

/** What a process does: answer the API, make deliveries, or both. */
export type Roles = { api: boolean; worker: boolean }

export type Service = {
  /** Where the API answers; null in a worker. */
  url: string | null
  /** Where the metrics are; null when they are off. */
  metricsUrl: string | null
  engine: { isUp(): Promise<boolean> }
}

/** What a composition root gives: the log, the stack to put on what is started, and the end of the process. */
export type ServiceHost = {
  logger: Logger
  running: Stack
  shutdown: Shutdown
  /** Ends the process in good order after an error that nobody caught. */
  end: (reason: string) => void
  /** What development adds to the API. */
  pages?: readonly Middleware[]
}

/**
 * Builds the process from its configuration and starts it; what it starts goes onto `running`, to be stopped by the
 * caller once it has begun the shutdown: no more requests, attempts under way finish, what was not begun is given back.
 * Throws when the database or the port is not to be had.
 */
export async function startService(config: Config, roles: Roles, host: ServiceHost): Promise<Service> {
  const { logger, running, shutdown, pages } = host
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
  const httpClient = createHttpClient({
    ...httpClientSettings(config),
    stopping: shutdown.stopping,
    nowMs: () => clock.nowMs(),
  })
  const notifications = createNotifications(config, httpClient, logger)
  if (roles.worker) notifications.warnOfMissingChannels()
  const client = () => engine.client()
  const { temporalTaskQueue: taskQueue, retryLeadMs: leadMs } = config
  const workflows = createDeliveryWorkflows({ client, taskQueue, leadMs, eager: roles.worker, clock })
  const retryWorkflows = createRetryWorkflows({ client, taskQueue })
  const notifyAfterMs = config.notifyAfterSeconds * 1_000
  const incidentWorkflows = createIncidentWorkflows({ client, taskQueue, notifyAfterMs })
  const attempts = {
    dataSource,
    clock,
    httpClient,
    secretBox,
    logger,
    metrics,
    workflows,
    incidentWorkflows,
    webhooks: createWebhookCache(dataSource),
    onAttempt: (event: AttemptEvent) => dispatcher.onAttempt(event),
    recordFirstSuccess: createRecordFirstSuccess(dataSource, { follow: config.firstAttempt === 'overflow' }),
    locks: createWebhookLocks(config.databasePoolSize),
    attemptTimeoutMs: config.attemptTimeoutMs,
    endpoints: createEndpoints({ maxLimit: config.webhookConcurrency, runningMs: createRunningClock() }),
    timeoutPace: createPace({ intervalMs: TIMEOUT_INTERVAL_MS }),
  }
  const activities = createActivities({
    ...attempts,
    shutdown,
    channels: notifications.channels,
    webhookConcurrency: config.webhookConcurrency,
  })
  const engine = createEngine({
    address: config.temporalAddress,
    namespace: config.temporalNamespace,
    tls: config.temporalTls,
    apiKey: config.temporalApiKey,
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
  const { lease, dispatcher, sweep, backfill } = createDispatch(config, roles, {
    ...attempts,
    retryWorkflows,
    terminateIfStuck: createTerminateIfStuck(client),
    isServing: () => engine.isServing(),
    processId,
    shutdown,
  })
  const urlPolicy = { allowHttp: config.allowHttp, allowedCidrs: config.allowedCidrs }
  const validatePayload = createPayloadValidator()
  const streamLimits = { perKey: config.streamsPerKey, perProcess: config.streamsPerProcess }
  const streams = createStreams({ dataSource, logger, metrics, limits: streamLimits })
  const backlog = createBacklogLimit({
    limit: config.publishBacklogLimit,
    count: (limit) => transactLonger(dataSource, (manager) => countPending(manager, limit)),
    logger,
  })
  const api = {
    dataSource,
    ...createAuthentication(dataSource, config, { logger, metrics }),
    secretBox,
    publish: createPublisher(dataSource, lease, backlog),
    lease,
    webhooks: attempts.webhooks,
    locks: attempts.locks,
    sweep: roles.worker ? sweep : null,
    stopping: shutdown.stopping,
    streams,
    dispatcher,
    workflows,
    retryWorkflows,
    incidentWorkflows,
    urlPolicy,
    trustedProxies: config.trustedProxies,
    webhooksPerOrganisation: config.webhooksPerOrganisation,
    validatePayload,
    vapidPublicKey: notifications.vapidPublicKey,
    publicUrl: config.publicUrl,
    temporalUi: temporalUi(config),
    engine,
    logger,
    metrics,
  }
  const app = createApp(api, pages)
  const metricsUrl = await metering.serve({ dataSource, engine, dispatcher }, running)
  // Last what works by itself: a port that is taken must end the process before anything is delivered.
  const listening = roles.api
    ? await listen(app, {
        host: config.host,
        port: config.port,
        maxConnections: config.apiConnections,
        onRefused: () => metrics.connectionRefused(),
      })
    : null
  running.push('the HTTP client', () => httpClient.close())
  running.push('the engine', () => engine.stop())
  // Again, for what requests and the sweep brought while they ended.
  running.push('the last deliveries', () => dispatcher.stop())
  // All within the one grace: attempts under way finish, and what has not begun is given back at once.
  running.pushTogether({
    // It waits for streams that end in good order, and cuts off what takes too long.
    'the API': () => Promise.all([streams.close(), listening?.close()]),
    'the sweep': () => sweep.stop(),
    'the backfill': () => backfill.stop(),
    'the dispatcher': () => dispatcher.stop(),
    'the workers': () => engine.stopWorking(),
    // Mails of which nothing has left yet are given back, and the workers need not wait for them.
    'the mail connections': () => notifications.close(),
  })
  engine.start()
  if (roles.worker) {
    sweep.start()
    backfill.start()
  }
  const urls = { url: listening?.url ?? null, metricsUrl }
  logger.info({ event: 'service.started', processId, roles, ...urls }, 'service.started')
  return { ...urls, engine }
}

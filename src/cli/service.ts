import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'
import { createActivities } from '../../activities/index.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { createPayloadValidator } from '../catalogue/payload-validator.ts'
import type { Config } from '../config.ts'
import { createStarter } from '../delivery/starter.ts'
import { createSweep } from '../delivery/sweep.ts'
import { START_LEASE_MS } from '../delivery/timing.ts'
import { createIncidentTurns } from '../delivery/turns.ts'
import { createWebhookGate } from '../delivery/webhook-gate.ts'
import { createPublisher } from '../events/publish.ts'
import { createStreams } from '../events/streams.ts'
import { createApp } from '../http/app.ts'
import { listen } from '../http/listen.ts'
import { createRateLimits, type RateLimitSettings } from '../http/rate-limits.ts'
import type { Logger } from '../logger.ts'
import { createHttpClient } from '../outbound/http-client.ts'
import { assertGuardWorks } from '../outbound/self-test.ts'
import { createSecretBox } from '../secret-box.ts'
import { createDeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import { createEngine } from '../temporal/engine.ts'
import { createIncidentWorkflows } from '../temporal/incident-workflows.ts'
import { ensureRetentionSchedule } from '../temporal/retention-schedule.ts'
import { createRetryWorkflows } from '../temporal/retry-workflows.ts'
import { createWorker } from '../temporal/worker.ts'
import { createMetering } from './metrics.ts'
import { createNotifications } from './notifications.ts'
import { assertKeyRing } from './assert-key-ring.ts'
import { openDatabase } from './open-database.ts'
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

/** How much of an answer is kept with an attempt, and how long connecting may take of the attempt's own time. */
const MAX_RESPONSE_BYTES = 32 * 1024
const CONNECT_TIMEOUT_MS = 5_000

/**
 * Builds the process from its configuration and starts it; what it starts goes onto `running`, to be stopped by the
 * caller: no more requests, attempts under way finish, what was not started is given back. `pages` is what
 * development adds to the API.
 * Throws when the database or the port is not to be had.
 */
export async function startService(
  config: Config,
  roles: Roles,
  logger: Logger,
  running: Stack,
  pages: readonly Middleware[] = [],
): Promise<Service> {
  const processId = randomUUID()
  warnOfOpenPolicy(config, logger)
  await assertGuardWorks()
  const metering = await createMetering(config, logger)
  const { metrics } = metering
  const dataSource = await openDatabase(config, logger)
  running.push('the database', () => dataSource.destroy())
  const secretBox = createSecretBox(config.encryptionKeys)
  await assertKeyRing(dataSource, secretBox)
  const httpClient = createHttpClient({
    allowHttp: config.allowHttp,
    allowedCidrs: config.allowedCidrs,
    timeoutMs: config.attemptTimeoutMs,
    connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, config.attemptTimeoutMs),
    maxResponseBytes: MAX_RESPONSE_BYTES,
    userAgent: `Posthorn/${packageJson.version}`,
  })
  const notifications = createNotifications(config, httpClient, logger)
  if (roles.worker) notifications.warnOfMissingChannels()
  const client = () => engine.client()
  const taskQueue = config.temporalTaskQueue
  const leadMs = config.retryLeadMs
  const workflows = createDeliveryWorkflows({ client, taskQueue, leadMs, eager: roles.worker })
  const retryWorkflows = createRetryWorkflows({ client, taskQueue })
  const notifyAfterMs = config.notifyAfterSeconds * 1_000
  const incidentWorkflows = createIncidentWorkflows({ client, taskQueue, notifyAfterMs })
  const activities = createActivities({
    dataSource,
    httpClient,
    secretBox,
    logger,
    metrics,
    workflows,
    incidentWorkflows,
    turns: createIncidentTurns(),
    channels: notifications.channels,
    attemptTimeoutMs: config.attemptTimeoutMs,
    gate: createWebhookGate(config.webhookConcurrency),
    webhookConcurrency: config.webhookConcurrency,
  })
  const engine = createEngine({
    address: config.temporalAddress,
    namespace: config.temporalNamespace,
    tls: config.temporalTls,
    apiKey: config.temporalApiKey,
    logger,
    createWorker: roles.worker
      ? (connection) => createWorker(connection, workerSettings(config), activities)
      : null,
    onConnected: roles.worker
      ? (temporal) => ensureRetentionSchedule(temporal, { taskQueue, limits: retentionLimits(config) })
      : null,
  })
  const starter = createStarter({
    dataSource,
    workflows,
    logger,
    metrics,
    processId,
    concurrency: config.startConcurrency,
  })
  const sweep = createSweep({
    dataSource,
    workflows,
    retryWorkflows,
    incidentWorkflows,
    starter,
    logger,
    metrics,
    processId,
  })
  const urlPolicy = { allowHttp: config.allowHttp, allowedCidrs: config.allowedCidrs }
  const validatePayload = createPayloadValidator()
  const streamLimits = { perKey: config.streamsPerKey, perProcess: config.streamsPerProcess }
  const streams = createStreams({ dataSource, logger, metrics, limits: streamLimits })
  const api = {
    dataSource,
    secretBox,
    publish: createPublisher(dataSource, { owner: processId, leaseMs: START_LEASE_MS }),
    streams,
    starter,
    workflows,
    retryWorkflows,
    incidentWorkflows,
    processId,
    urlPolicy,
    trustedProxyHops: config.trustedProxyHops,
    rateLimits: createRateLimits(rateLimitSettings(config), { logger, metrics }),
    webhooksPerOrganisation: config.webhooksPerOrganisation,
    validatePayload,
    vapidPublicKey: notifications.vapidPublicKey,
    engine,
    logger,
    metrics,
  }
  const app = createApp(api, pages)
  const metricsUrl = await metering.serve({ dataSource, engine, starter }, running)
  // Last what works by itself: a port that is taken must end the process before anything is delivered.
  const listening = roles.api ? await listen(app, { host: config.host, port: config.port }) : null
  running.push('the HTTP client', () => httpClient.close())
  running.push('the engine', () => engine.stop())
  // Before the engine: mails of which nothing has left yet are given back, and the worker need not wait for them.
  running.push('the mail connections', () => notifications.close())
  running.push('the starter', () => starter.stop())
  running.push('the sweep', () => sweep.stop())
  // Together: the API waits for streams that end in good order, and cuts off what takes too long.
  if (listening !== null)
    running.push('the API', () => Promise.all([streams.close(), listening.close()]).then(() => undefined))
  engine.start()
  if (roles.worker) sweep.start()
  const url = listening?.url ?? null
  logger.info({ event: 'service.started', processId, roles, url, metricsUrl }, 'service.started')
  return { url, metricsUrl, engine }
}

function workerSettings(config: Config) {
  return {
    namespace: config.temporalNamespace,
    taskQueue: config.temporalTaskQueue,
    activitySlots: config.activitySlots,
    workflowTaskSlots: config.workflowTaskSlots,
    cachedWorkflows: config.cachedWorkflows,
    shutdownGraceMs: config.shutdownGraceMs,
  }
}

function retentionLimits({ retentionCompletedDays, retentionFailedDays, retentionAuditDays }: Config) {
  return {
    completedDays: retentionCompletedDays,
    failedDays: retentionFailedDays,
    auditDays: retentionAuditDays,
  }
}

function rateLimitSettings(config: Config): RateLimitSettings {
  return {
    management: config.rateLimitManagement,
    publish: config.rateLimitPublish,
    authFailures: config.rateLimitAuthFailures,
  }
}

/** An opened policy belongs to development; whoever runs it should not be able to miss it. */
function warnOfOpenPolicy(config: Config, logger: Logger): void {
  if (config.allowHttp)
    logger.warn({ event: 'policy.http_allowed' }, 'POSTHORN_ALLOW_HTTP: receivers without TLS are allowed')
  if (config.allowedCidrs.length > 0) {
    const fields = { event: 'policy.private_allowed', ranges: config.allowedCidrs }
    logger.warn(fields, 'POSTHORN_ALLOWED_CIDRS: receivers in private address ranges are allowed')
  }
}

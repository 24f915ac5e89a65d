import { setFlagsFromString } from 'node:v8'
import type { Client } from '@temporalio/client'
import type { Middleware } from 'koa'
import type { DataSource } from 'typeorm'
import { createActivities, type Activities } from '../../activities/index.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { createPayloadThreads } from '../catalogue/payload-threads.ts'
import type { Config } from '../config/load.ts'
import { closeDataSource } from '../db/connection/data-source.ts'
import { countBacklogInTime } from '../db/queries/backlog.ts'
import { sweepEverything } from '../deliveries/recovery/sweeper.ts'
import { createPositions } from '../stream/positions.ts'
import { createStreams } from '../stream/streams.ts'
import { createApp } from '../http/app.ts'
import type { Logger } from '../observability/logger.ts'
import { flushSpans } from '../observability/tracing.ts'
import { createHttpClient } from '../outbound/http-client.ts'
import { assertGuardWorks } from '../outbound/pinned-connector.ts'
import { createSecretBox } from '../secret-box.ts'
import {
  createDeliveryWorkflows,
  createIncidentWorkflows,
  createJobWorkflows,
} from '../temporal/workflows.ts'
import {
  readTemporalCredentials,
  createAuthentication,
  apiSettings,
  retentionLimits,
  warnOfOpenPolicy,
  workerSettings,
} from './service-settings.ts'
import { createTemporalService, type TemporalWork } from '../temporal/temporal-service.ts'
import { ensureRetentionSchedule } from '../temporal/retention-schedule.ts'
import { createWorkers } from '../temporal/worker.ts'
import type { Shutdown } from '../shutdown.ts'
import { createWorkflowTermination, createTerminateIfStuck } from '../temporal/workflow-progress.ts'
import { createDeliveries, createPublishing, type Roles } from './dispatch.ts'
import { createMetering } from './metering.ts'
import { createBacklogReader } from './metrics/backlog-reader.ts'
import { createNotifications } from './notifications.ts'
import { assertKeyRing, warnOfMissingKeys } from './start-checks.ts'
import { listenInWords } from '../http/listen.ts'
import { onUnexpectedError, type Stack } from './process-end.ts'
import { openDatabase, startDatabaseClock } from './open-database.ts'

/** A timer of Temporal fires a little late, so a retry goes to a worker ahead of its due time (ADR 0009). */
const RETRY_LEAD_MS = 1_000

/** Open event streams, half of them of one organisation at most, and open connections: beyond them only probes are answered. */
const STREAMS_PER_PROCESS = 2_000
const API_CONNECTIONS = 5_000

/**
 * V8 collects the heap when it has grown by two fifths since the last time, not when it is up to four times as large: after
 * a burst of large bodies half of the heap was garbage, and nothing had it collected.
 */
const HEAP_GROWTH = '--heap-growing-percent=40'

const API_LISTENER = { what: 'API', hostVariable: 'HOST', portVariable: 'PORT' }

export type Service = {
  /** Address of the API; null in a worker. */
  url: string | null
  /** Address of the metrics; null when they are off. */
  metricsUrl: string | null
  temporal: { isUp(): Promise<boolean> }
}

/** What a composition root provides: the log, the stack of started parts, and the shutdown. */
export type ProcessHost = {
  logger: Logger
  running: Stack
  shutdown: Shutdown
  /** Stops the process cleanly after an uncaught error. */
  end: (reason: string) => void
}

export type ServiceHost = ProcessHost & {
  catalogue: Catalogue
  /** Pages that development adds to the API. */
  pages?: readonly Middleware[]
}

/**
 * Builds a process from its configuration and starts it. Started parts go onto `running`, which the caller stops after
 * it has begun the shutdown: requests are refused, attempts in flight finish, and unstarted deliveries are released.
 * Throws when the database is unavailable or the port is taken.
 */
export async function startService(config: Config, roles: Roles, host: ServiceHost): Promise<Service> {
  const { logger, running, shutdown } = host
  setFlagsFromString(HEAP_GROWTH)
  const base = await openBase(config, host)
  // Files that cannot be read refuse the start.
  readTemporalCredentials(config)
  const temporal = createTemporalService({
    address: config.temporalAddress,
    namespace: config.temporalNamespace,
    readCredentials: () => readTemporalCredentials(config),
    logger,
  })
  const notifications = createNotifications(config, base.httpClient, logger)
  const workflows = createWorkflows(config, roles, () => temporal.client())
  const deliveries = createDeliveries(config, roles, { ...base, ...workflows, temporal, shutdown })
  const { dispatcher, sweep, following, attempts } = deliveries
  const streams = createStreams({
    ...base,
    catalogue: host.catalogue,
    positions: createPositions(config.encryptionKeys),
    limits: { perOrganisation: STREAMS_PER_PROCESS / 2, perProcess: STREAMS_PER_PROCESS },
  })
  const api = {
    ...base,
    ...workflows,
    ...apiSettings(config, logger),
    ...createAuthentication(base.dataSource, config, base),
    publish: createPublishing(base.dataSource, config, { ...deliveries, logger }),
    commits: deliveries.commits,
    webhooks: deliveries.webhookChanges,
    locks: attempts.locks,
    sweep: roles.worker ? sweep : null,
    stopping: shutdown.stopping,
    streams,
    dispatcher,
    catalogue: host.catalogue,
    payloadThreads: createPayloadThreads(host.catalogue.eventKeys),
    vapidPublicKey: notifications.vapidPublicKey,
    temporal,
    readBacklog: createBacklogReader({ read: () => countBacklogInTime(base.dataSource), logger }),
  }
  const metricsUrl = await base.metering.serve(api, running)
  // Last what works by itself: a port that is taken must end the process before anything is delivered.
  const listening = roles.api
    ? await listenInWords(API_LISTENER, createApp(api, host.pages), {
        host: config.host,
        port: config.port,
        maxConnections: API_CONNECTIONS,
        trustedProxies: config.trustedProxies,
        onRefused: () => base.metrics.connectionRefused(),
      })
    : null
  running.push('the HTTP client', () => base.httpClient.close())
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
  if (roles.worker) {
    notifications.warnOfMissingChannels()
    const activities = createActivities({
      ...attempts,
      ...workflows,
      makeAttempt: dispatcher.makeAttempt,
      shutdown,
      channels: notifications.channels,
      webhookConcurrency: config.webhookConcurrency,
    })
    temporal.start(createTemporalWork(config, activities, base.dataSource))
    dispatcher.begin()
    sweep.start()
    following.start()
  } else temporal.start(null)
  const urls = { url: listening?.url ?? null, metricsUrl }
  logger.info({ event: 'service.started', roles, ...urls })
  return { ...urls, temporal }
}

/** Opens what all other parts need: metrics, database, clock, keys and HTTP client. */
async function openBase(config: Config, { catalogue, logger, running, shutdown, end }: ServiceHost) {
  running.push('the last spans', flushSpans)
  warnOfOpenPolicy(config, logger)
  await assertGuardWorks()
  const metering = await createMetering(config, logger)
  const { metrics } = metering
  onUnexpectedError({ logger, metrics, end })
  const dataSource = await openDatabase(config, logger)
  running.push('the database', () => closeDataSource(dataSource))
  const clock = await startDatabaseClock(dataSource, logger, running)
  const secretBox = createSecretBox(config.encryptionKeys)
  await assertKeyRing(dataSource, secretBox)
  await warnOfMissingKeys(dataSource, catalogue, logger)
  const { stopping } = shutdown
  const nowMs = (): number => clock.nowMs()
  const { allowHttp, allowedCidrs, attemptTimeoutMs: timeoutMs } = config
  const httpClient = createHttpClient({ allowHttp, allowedCidrs, timeoutMs, stopping, nowMs })
  return { logger, metering, metrics, dataSource, clock, secretBox, httpClient }
}

/** Builds what starts and signals workflows. */
function createWorkflows(config: Config, roles: Roles, client: () => Client) {
  const taskQueue = config.temporalTaskQueue
  const notifyAfterMs = config.notifyAfterSeconds * 1_000
  return {
    workflows: createDeliveryWorkflows({
      client,
      taskQueue,
      leadMs: RETRY_LEAD_MS,
      // Temporal decides which version runs a workflow, so a process does not begin its own.
      eager: roles.worker && config.temporalBuildId === '',
    }),
    ...createJobWorkflows({ client, taskQueue }),
    incidentWorkflows: createIncidentWorkflows({ client, taskQueue, notifyAfterMs }),
    termination: createWorkflowTermination(client),
    terminateIfStuck: createTerminateIfStuck(client),
  }
}

function createTemporalWork(config: Config, activities: Activities, dataSource: DataSource): TemporalWork {
  const schedule = { taskQueue: config.temporalTaskQueue, limits: retentionLimits(config) }
  return {
    createWorkers: (connection) => createWorkers(connection, workerSettings(config), activities),
    onConnected: (client, isNew) => ensureRetentionSchedule(client, { ...schedule, isNew }),
    onDataLost: () => sweepEverything(dataSource),
  }
}

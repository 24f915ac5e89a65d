import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'
import { createActivities, type Activities, type ActivityDependencies } from '../../../activities/index.ts'
import { createEndpoints, type Endpoints } from '../../../src/deliveries/attempt/endpoint-concurrency.ts'
import {
  type AttemptDependencies,
  type AttemptSignals,
  createAttempt,
} from '../../../src/deliveries/attempt/make-attempt.ts'
import { createPace } from '../../../src/timers.ts'
import { createRecordFirstSuccess } from '../../../src/deliveries/attempt/record-outcome.ts'
import { createRecordUnderLock } from '../../../src/deliveries/attempt/record-under-lock.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { createWebhookChanges, type WebhookChanges } from '../../../src/webhooks/webhook-locks.ts'
import type { AttemptRequest, RowOutcome } from '../../../src/domain/attempt-outcome.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createHttpClient } from '../../../src/outbound/http-client.ts'
import { createShutdown } from '../../../src/shutdown.ts'
import { testSecretBox } from '../database/factories.ts'
import { silentLogger } from '../silent-logger.ts'

/** What activities and inline attempts need. */
export type TestDependencies = AttemptDependencies & Omit<ActivityDependencies, 'makeAttempt'>

/** What activities and inline attempts need, with receivers on this machine allowed; nothing is woken. */
export function attemptDependencies(
  dataSource: DataSource,
  attemptTimeoutMs = 15_000,
): TestDependencies & { webhooks: WebhookChanges } {
  const locks = createWebhookLocks()
  return {
    dataSource,
    webhooks: createWebhookChanges(),
    clock: { nowMs: () => Date.now() },
    secretBox: testSecretBox,
    logger: silentLogger,
    metrics: createMetrics(),
    attemptTimeoutMs,
    endpoints: createEndpoints({ maxLimit: 50 }),
    webhookConcurrency: 50,
    locks,
    timeoutPace: createPace({ intervalMs: 1 }),
    shutdown: createShutdown(1_000),
    recordFirstSuccess: createRecordFirstSuccess(dataSource, { followAfterMs: null }),
    recordUnderLock: createRecordUnderLock({ dataSource, locks, followAfterMs: null }),
    incidentWorkflows: { signal: () => Promise.resolve() },
    termination: { ofDelivery: () => Promise.resolve(), ofIncident: () => Promise.resolve() },
    channels: { email: null, push: null },
    workflows: { wake: () => Promise.resolve() },
    httpClient: createHttpClient({
      allowHttp: true,
      allowedCidrs: ['127.0.0.0/8'],
      timeoutMs: attemptTimeoutMs,
    }),
  }
}

/** The activities of a worker whose attempts are not reported. */
export function testActivities(dependencies: TestDependencies): Activities {
  return createActivities({ ...dependencies, makeAttempt: createAttempt(dependencies) })
}

/** A request of the first attempt of a delivery, to be made at once, but for `changes`. */
export function attemptRequest(
  {
    organisationId,
    webhookId,
    deliveryId,
  }: Pick<AttemptRequest, 'organisationId' | 'webhookId' | 'deliveryId'>,
  changes: Partial<AttemptRequest> = {},
): AttemptRequest {
  const whose = { organisationId, webhookId, deliveryId }
  return { ...whose, number: 1, dueAtMs: null, maxWaitMs: 1_000, queue: 'first', ...changes }
}

const never = new AbortController().signal

/** The signals of an attempt that is not cancelled, in a process that does not end. */
export const NO_SIGNALS: AttemptSignals = { cancelled: never, shutDown: never }

/** Lets every message through at once. */
export const unbounded = (send: () => Promise<void>): Promise<void> => send()

/** Lets the endpoint answer `count` POSTs at once, by default so many that its limit is the highest. */
export function proveEndpoint(endpoints: Endpoints, webhookId: string, count = 50): void {
  for (let index = 0; index < count; index++) {
    const slot = endpoints.acquire(webhookId, '')
    if (!('begin' in slot)) throw new Error('the endpoint has no free slot')
    slot.begin()
    slot.release({ succeeded: true, isTimeout: false })
  }
}

/** Makes attempts as workflows do: one that found no slot of its endpoint free is requested again. */
export function attemptAsWorkflows(
  dependencies: AttemptDependencies,
): (request: AttemptRequest) => Promise<RowOutcome> {
  const attempt = createAttempt(dependencies)
  return async function make(request) {
    const outcome = await attempt(request, NO_SIGNALS)
    if (outcome.state !== 'deferred') return outcome
    await delay(outcome.delayMs)
    return make(request)
  }
}

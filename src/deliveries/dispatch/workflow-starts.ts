import type { DeliveryToStart } from '../../db/queries/events.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import { isTemporalUnavailable } from '../../temporal/unavailable.ts'
import type { Shutdown } from '../../shutdown.ts'
import type { NextAttempt } from '../../domain/attempt-outcome.ts'
import type { AttemptKind } from '../../domain/task-queues.ts'
import { isSlowOrHanging, type EndpointHealth } from '../attempt/endpoint.ts'
import type { Endpoints } from '../attempt/endpoint-registry.ts'
import { createPace, type Pace } from '../attempt/pace.ts'
import type { Leases } from './leases.ts'
import { createRoundRobinQueue } from '../../round-robin-queue.ts'
import { isForHealthyEndpoint } from './route-delivery.ts'

/** Starts the workflows of deliveries. */
export type WorkflowStarts = {
  /** Queues a start with the first attempt. `isSlow`: the endpoint is slow, hangs or fails. */
  add(delivery: DeliveryToStart, isSlow: boolean): void
  /** Starts the workflow with the retry of an inline attempt. The sweeper recovers what cannot be started. */
  addRetry(delivery: DeliveryToStart, next: NextAttempt, kind: AttemptKind): void
  /** Tries the starts of an endpoint that may have a free slot now. */
  wake(webhookId: string): void
  /** Returns the queued starts of healthy endpoints. */
  waiting(): number
  /** Returns those of them for which there is room. */
  ready(): number
  /** Returns the queued starts of a slow or failing endpoint. */
  slowWaiting(webhookId: string): number
  /** Returns the webhooks with queued starts of slow or failing endpoints. */
  slowWebhooks(): string[]
  inFlight(): number
  /** True while Temporal is unavailable, and shortly after. */
  isPaused(): boolean
  /** Removes and returns what is queued. */
  drain(): DeliveryToStart[]
  /** Returns when no start is in flight. */
  stop(): Promise<void>
}

/**
 * `refused`: Temporal refused the start. `paused`: not tried, since Temporal is unavailable. `unhealthy`: not tried, since
 * the endpoint is not healthy any more.
 */
export type StartResult = 'started' | 'refused' | 'paused' | 'unhealthy'

/** Delay of all starts after one that found Temporal unavailable. */
const PAUSE_DELAY_MS = 1_000

/** Starts for slow and failing endpoints in flight at once. */
const SLOW_CONCURRENCY = 4

/** Inline attempts that fail together: their workflows, started together, would leave Temporal no time for others. */
const RETRY_PACE = { intervalMs: 18, maxDelayMs: 600 }

/** Starts for retries that wait for their pace or are in flight. The sweeper recovers what exceeds this. */
const MAX_RETRIES = 1_000

/** Interval at which deliveries of unhealthy endpoints leave the queue of healthy ones. */
const CHECK_INTERVAL_MS = 250

type QueueName = 'healthy' | 'slow' | 'hanging'

export type WorkflowStartDependencies = {
  workflows: Pick<DeliveryWorkflows, 'start'>
  endpoints: Endpoints
  logger: Logger
  metrics: Metrics
  /** Starts in flight at once. */
  concurrency: number
  /** False in a process without a worker: it leaves all attempts to others. */
  makesAttempts: boolean
  /** False while Temporal is unavailable, as far as this process knows. */
  isServing: () => boolean
  leases: Pick<Leases, 'markStarted'>
  shutdown: Pick<Shutdown, 'stopping'>
  /** Paces the starts for hanging endpoints. */
  timeoutPace: Pace
  /** Returns the first attempts of the webhook in Temporal. */
  inTemporal: (webhookId: string) => number
  onStarting: (delivery: DeliveryToStart, isSlow: boolean) => void
  onEnded: (delivery: DeliveryToStart, result: StartResult) => void
}

export function createWorkflowStarts(dependencies: WorkflowStartDependencies): WorkflowStarts {
  const { workflows, endpoints, logger, metrics, concurrency, makesAttempts, leases, onEnded } = dependencies
  const { timeoutPace } = dependencies
  let pausedUntilMs = -Infinity

  const createQueue = (name: QueueName, slots: number) =>
    createRoundRobinQueue<DeliveryToStart>({
      concurrency: slots,
      hasRoom: (webhookId) => !makesAttempts || hasRoom(webhookId, name),
      run: (delivery) => start(delivery, name),
    })
  // Hanging, slow or failing, and healthy endpoints do not wait for each other.
  const queues = {
    healthy: createQueue('healthy', concurrency),
    slow: createQueue('slow', Math.min(SLOW_CONCURRENCY, concurrency)),
    hanging: createQueue('hanging', 1),
  }
  const allQueues = [queues.healthy, queues.slow, queues.hanging]
  const retryPace = createPace(RETRY_PACE)
  const retries = new Set<Promise<unknown>>()
  const checking = setInterval(rerouteQueued, CHECK_INTERVAL_MS)

  function hasRoom(webhookId: string, name: QueueName): boolean {
    if (dependencies.inTemporal(webhookId) >= endpoints.attemptsTogether(webhookId)) return false
    // Expected retries come first.
    return name !== 'hanging' || endpoints.freeSlots(webhookId) > 0
  }

  async function start(delivery: DeliveryToStart, from: QueueName): Promise<void> {
    if (from === 'hanging') await timeoutPace.next(dependencies.shutdown.stopping)
    const isUnhealthy = from === 'healthy' && !isForHealthyEndpoint(delivery, endpoints)
    if (isUnhealthy || isPaused()) {
      onEnded(delivery, isUnhealthy ? 'unhealthy' : 'paused')
      return
    }
    const { webhookId } = delivery
    const kind = kindOf(endpoints.health(webhookId), from === 'healthy')
    dependencies.onStarting(delivery, from !== 'healthy')
    const isStarted = await callTemporal(delivery, { number: 1, dueAtMs: null }, kind)
    onEnded(delivery, isStarted ? 'started' : 'refused')
    if (!isStarted) wake(webhookId)
  }

  function kindOf(health: EndpointHealth, isForHealthy: boolean): AttemptKind {
    if (isSlowOrHanging(health)) return 'slow'
    if (makesAttempts && health === 'unproven') return 'unproven'
    return isForHealthy ? 'first' : 'retry'
  }

  async function callTemporal(
    delivery: DeliveryToStart,
    next: NextAttempt,
    kind: AttemptKind,
  ): Promise<boolean> {
    const { deliveryId } = delivery
    try {
      await workflows.start(delivery, next, { allowRestart: false, kind })
      leases.markStarted(deliveryId)
      metrics.startEnded('started')
      return true
    } catch (error) {
      metrics.startEnded('refused')
      // One log line is enough while Temporal is unavailable.
      if (isPaused()) return false
      if (isTemporalUnavailable(error)) pausedUntilMs = performance.now() + PAUSE_DELAY_MS
      logger.warn({ event: 'workflow_start.refused', deliveryId, err: error }, 'workflow_start.refused')
      return false
    }
  }

  function isPaused(): boolean {
    return performance.now() < pausedUntilMs || !dependencies.isServing()
  }

  /** Returns deliveries to the dispatcher whose endpoint is not healthy any more, and all while Temporal is unavailable. */
  function rerouteQueued(): void {
    const unhealthy = queues.healthy.drainWhere((next) => !isForHealthyEndpoint(next, endpoints))
    for (const delivery of unhealthy) onEnded(delivery, 'unhealthy')
    if (dependencies.isServing()) return
    for (const delivery of queues.healthy.drain()) onEnded(delivery, 'paused')
  }

  function wake(webhookId: string): void {
    for (const queue of allQueues) queue.wake(webhookId)
  }

  return {
    add(delivery, isSlow) {
      // Frees the payload: the workflow reads it again.
      const { webhookId } = delivery
      const slowQueue = endpoints.health(webhookId) === 'hanging' ? 'hanging' : 'slow'
      queues[isSlow ? slowQueue : 'healthy'].add(webhookId, { ...delivery, fresh: null })
    },
    addRetry(delivery, next, kind) {
      if (isPaused() || retries.size >= MAX_RETRIES) return
      const pace = kind === 'slow' ? timeoutPace : retryPace
      const withoutPayload = { ...delivery, fresh: null }
      const retry = pace
        .next(dependencies.shutdown.stopping)
        .then(() => callTemporal(withoutPayload, next, kind))
        .finally(() => retries.delete(retry))
      retries.add(retry)
    },
    wake,
    waiting: () => queues.healthy.size(),
    ready: () => queues.healthy.ready(),
    slowWaiting: (webhookId) => queues.slow.sizeOf(webhookId) + queues.hanging.sizeOf(webhookId),
    slowWebhooks: () => [...queues.slow.keys(), ...queues.hanging.keys()],
    inFlight: () => allQueues.reduce((sum, queue) => sum + queue.inFlight(), 0),
    isPaused,
    drain: () => allQueues.flatMap((queue) => queue.drain()),
    async stop() {
      clearInterval(checking)
      await Promise.all(allQueues.map((queue) => queue.idle()))
      await Promise.all(retries)
    },
  }
}

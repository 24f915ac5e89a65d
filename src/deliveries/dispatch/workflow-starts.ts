import type { DeliveryToStart } from '../../db/queries/events.ts'
import type { Logger } from '../../logger.ts'
import type { Metrics } from '../../metrics.ts'
import type { DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import { isEngineAway } from '../../temporal/engine-away.ts'
import type { Shutdown } from '../../shutdown.ts'
import type { AttemptKind } from '../../domain/task-queues.ts'
import { isSlowOrHanging, type EndpointHealth } from '../attempt/endpoint.ts'
import type { Endpoints } from '../attempt/endpoints.ts'
import { createPace, type Pace } from '../attempt/pace.ts'
import type { Leases } from './leases.ts'
import { createRoundRobinQueue } from './round-robin-queue.ts'
import { isForHealthyEndpoint } from './route-delivery.ts'

/** Starts the workflows of deliveries. */
export type WorkflowStarts = {
  /** Queues the start, for the first attempt; `isSlow`: its endpoint is slow, hangs or fails. */
  add(delivery: DeliveryToStart, isSlow: boolean): void
  /** Starts the workflow with the attempt after an inline one. What cannot be started is recovered after its time. */
  addRetry(delivery: DeliveryToStart, next: NextAttempt, kind: AttemptKind): void
  /** The endpoint may have a free slot now. */
  wake(webhookId: string): void
  /** Starts of healthy endpoints that are queued, and those of them for which there is room. */
  waiting(): number
  ready(): number
  /** Starts of a slow or failing endpoint that are queued. */
  slowWaiting(webhookId: string): number
  /** Webhooks of the latter. */
  slowWebhooks(): string[]
  inFlight(): number
  /** Temporal cannot be reached, or did not answer a moment ago. */
  isPaused(): boolean
  /** Returns what is queued. */
  drain(): DeliveryToStart[]
  /** Returns when no start is in flight. */
  stop(): Promise<void>
}

/**
 * `refused`: Temporal took no start. `paused`: it was not asked, since it is away. `unsuited`: it was not asked, since the
 * endpoint is not healthy any more.
 */
export type StartResult = 'started' | 'refused' | 'paused' | 'unsuited'

/** Time without starts after one that Temporal did not answer. */
const PAUSE_MS = 1_000

/** Starts for slow and failing endpoints in flight at once. */
const SLOW_CONCURRENCY = 4

/** What fails together is to be retried together. Started together, it would leave Temporal no time for anything else. */
const RETRY_PACE = { intervalMs: 18, maxDelayMs: 600 }

/** Starts that wait for their pace, and those in flight. What is above that the sweeper recovers. */
const MAX_RETRIES = 1_000

/** Interval at which deliveries that should not wait for a slot any more leave the queue of healthy endpoints. */
const CHECK_INTERVAL_MS = 250

type QueueName = 'healthy' | 'slow' | 'hanging'

type NextAttempt = { number: number; dueAtMs: number | null }

export type WorkflowStartDependencies = {
  workflows: Pick<DeliveryWorkflows, 'start'>
  endpoints: Endpoints
  logger: Logger
  metrics: Metrics
  /** Starts in flight at once. */
  concurrency: number
  /** False in a process without a worker: it leaves all attempts to others. */
  makesAttempts: boolean
  /** False while Temporal cannot be reached from here, as far as is known. */
  isServing: () => boolean
  leases: Pick<Leases, 'started'>
  shutdown: Pick<Shutdown, 'stopping'>
  /** At which workflows of hanging endpoints start. */
  timeoutPace: Pace
  /** First attempts of the webhook that are in Temporal: no more are started than its endpoint takes at once. */
  inTemporal: (webhookId: string) => number
  onStarting: (delivery: DeliveryToStart, isSlow: boolean) => void
  onEnded: (delivery: DeliveryToStart, result: StartResult) => void
}

export function createWorkflowStarts(dependencies: WorkflowStartDependencies): WorkflowStarts {
  const { workflows, endpoints, logger, metrics, concurrency, makesAttempts, leases, onEnded } = dependencies
  const { timeoutPace } = dependencies
  let pausedUntilMs = -Infinity

  const createQueue = (name: QueueName, places: number) =>
    createRoundRobinQueue<DeliveryToStart>({
      concurrency: places,
      hasRoom: (webhookId) => !makesAttempts || hasRoom(webhookId, name),
      run: (delivery) => start(delivery, name),
    })
  // What hangs, what is slow or fails, and what is well do not wait for each other.
  const queues = {
    healthy: createQueue('healthy', concurrency),
    slow: createQueue('slow', Math.min(SLOW_CONCURRENCY, concurrency)),
    hanging: createQueue('hanging', 1),
  }
  const allQueues = [queues.healthy, queues.slow, queues.hanging]
  const retryPace = createPace(RETRY_PACE)
  const retries = new Set<Promise<unknown>>()
  const checking = setInterval(passOn, CHECK_INTERVAL_MS)

  function hasRoom(webhookId: string, name: QueueName): boolean {
    const inTemporal = dependencies.inTemporal(webhookId)
    if (inTemporal >= endpoints.limit(webhookId)) return false
    // Retries come first, and while they have the slots there is nothing to gain from another delivery.
    return name !== 'hanging' || endpoints.freeSlots(webhookId) > 0
  }

  async function start(delivery: DeliveryToStart, from: QueueName): Promise<void> {
    if (from === 'hanging') await timeoutPace.next(dependencies.shutdown.stopping)
    if (from === 'healthy' && !isForHealthyEndpoint(delivery, endpoints)) {
      onEnded(delivery, 'unsuited')
      return
    }
    if (isPaused()) {
      onEnded(delivery, 'paused')
      return
    }
    const { webhookId, readAtMs } = delivery
    const kind = kindOf(endpoints.health(webhookId, readAtMs), from === 'healthy')
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
      await workflows.start(delivery, next, { again: false, kind })
      leases.started(deliveryId)
      metrics.startEnded('started')
      return true
    } catch (error) {
      metrics.startEnded('refused')
      // While Temporal is away the others need not each find that out, nor fill the log.
      if (isPaused()) return false
      if (isEngineAway(error)) pausedUntilMs = performance.now() + PAUSE_MS
      logger.warn({ event: 'starter.refused', deliveryId, err: error }, 'starter.refused')
      return false
    }
  }

  function isPaused(): boolean {
    return performance.now() < pausedUntilMs || !dependencies.isServing()
  }

  /** Their endpoint is not healthy any more; or Temporal is away, and with it the attempts that hold the slots. */
  function passOn(): void {
    const unsuited = queues.healthy.drainWhere((next) => !isForHealthyEndpoint(next, endpoints))
    for (const delivery of unsuited) onEnded(delivery, 'unsuited')
    if (dependencies.isServing()) return
    for (const delivery of queues.healthy.drain()) onEnded(delivery, 'paused')
  }

  function wake(webhookId: string): void {
    for (const queue of allQueues) queue.wake(webhookId)
  }

  return {
    add(delivery, isSlow) {
      // The queue may be long, and the workflow reads the payload itself.
      const { webhookId, readAtMs } = delivery
      const unhealthy = endpoints.health(webhookId, readAtMs) === 'hanging' ? 'hanging' : 'slow'
      queues[isSlow ? unhealthy : 'healthy'].add(webhookId, { ...delivery, fresh: null })
    },
    addRetry(delivery, next, kind) {
      if (isPaused() || retries.size >= MAX_RETRIES) return
      const pace = kind === 'slow' ? timeoutPace : retryPace
      const waiting = { ...delivery, fresh: null }
      const retry = pace
        .next(dependencies.shutdown.stopping)
        .then(() => callTemporal(waiting, next, kind))
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

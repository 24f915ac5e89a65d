import type { DeliveryLabel } from '../../../../../src/domain/workflow-inputs.ts'
import type { AttemptQueue } from '../../../../../src/domain/attempt-outcome.ts'
import type { DeliveryWorkflows } from '../../../../../src/temporal/workflows.ts'
import { TemporalUnavailableError } from '../../../../../src/temporal/calls.ts'
import type { TerminateIfStuck } from '../../../../../src/temporal/workflow-progress.ts'
import type { SimulatedProcess } from './world.ts'
import type { Random, VirtualTime } from './virtual-time.ts'

/** After this time Temporal gives the attempt of a lost worker to another. */
const HEARTBEAT_TIMEOUT_MS = 10_000

/** Temporal with the workflows of deliveries: each requests attempts of the workers that are alive. */
export function createFakeCluster(options: {
  time: VirtualTime
  random: Random
  state: { isTemporalAway: boolean; isTemporalSlow: boolean }
  processes: readonly SimulatedProcess[]
  onStart: (deliveryId: string, attempt: number) => void
}) {
  const { time, random, state, processes } = options
  // By their deliveries. A run that is not there any more was terminated.
  const running = new Map<string, symbol>()

  async function run(
    { organisationId, deliveryId, webhookId }: DeliveryLabel,
    first: { number: number; dueAtMs: number | null; queue: AttemptQueue },
  ): Promise<void> {
    const runId = Symbol()
    running.set(deliveryId, runId)
    const isTerminated = (): boolean => running.get(deliveryId) !== runId
    let { number, dueAtMs, queue } = first
    for (;;) {
      await time.sleep(Math.max(0, (dueAtMs ?? 0) - time.nowMs()))
      await time.sleep(state.isTemporalSlow ? random.between(500, 4_000) : random.between(2, 40))
      while (state.isTemporalAway) await time.sleep(500)
      if (isTerminated()) return
      const workers = processes.filter(({ isAlive, hasWorker }) => isAlive && hasWorker)
      if (workers.length === 0) {
        await time.sleep(500)
        continue
      }
      const worker = random.of(workers)
      const request = { organisationId, deliveryId, webhookId, number, queue, dueAtMs: null, maxWaitMs: 0 }
      const signals = { cancelled: new AbortController().signal, shutDown: new AbortController().signal }
      const outcome = await Promise.race([worker.dispatcher.makeAttempt(request, signals), worker.died])
      if (isTerminated()) return
      if (!outcome) {
        await time.sleep(HEARTBEAT_TIMEOUT_MS)
        continue
      }
      switch (outcome.state) {
        case 'deferred':
          if (outcome.delayMs === 0) queue = 'slow'
          await time.sleep(outcome.delayMs)
          break
        case 'waiting':
          number = outcome.attempts + 1
          dueAtMs = outcome.dueAtMs
          queue = outcome.failureCode === 'timeout' ? 'slow' : 'retry'
          break
        default:
          running.delete(deliveryId)
          return
      }
    }
  }

  async function passThrough(): Promise<void> {
    await time.sleep(state.isTemporalSlow ? random.between(100, 1_000) : random.between(2, 30))
    if (state.isTemporalAway) throw new TemporalUnavailableError('Temporal is away')
  }

  const start: DeliveryWorkflows['start'] = async (delivery, next, { queue = 'first' } = {}) => {
    options.onStart(delivery.deliveryId, next.number)
    await passThrough()
    if (running.has(delivery.deliveryId)) return false
    void run(delivery, { number: next.number, dueAtMs: next.dueAtMs, queue })
    // On its way back the answer may be lost.
    await passThrough()
    return true
  }
  const workflows: DeliveryWorkflows = {
    start,
    startFollowing: () => Promise.resolve(true),
    wake: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  }
  const terminateIfStuck: TerminateIfStuck = async (workflowId) => {
    await time.sleep(random.between(2, 30))
    return { state: running.has(workflowId.replace('delivery/', '')) ? 'alive' : 'gone' }
  }
  return {
    workflows,
    terminateIfStuck,
    terminate: (deliveryId: string) => running.delete(deliveryId),
    running,
  }
}

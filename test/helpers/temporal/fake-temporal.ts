import type { AttemptQueue, AttemptToStart } from '../../../src/domain/attempt-outcome.ts'
import type { DeliveryWorkflows } from '../../../src/temporal/workflows.ts'
import { TemporalUnavailableError } from '../../../src/temporal/calls.ts'
import type { TerminateIfStuck } from '../../../src/temporal/workflow-progress.ts'

type Start = {
  deliveryId: string
  webhookId: string
  next: AttemptToStart
  queue?: AttemptQueue
}

/** Temporal at its typed seam: notes what it is asked; can be away. It makes no attempts. */
export type FakeTemporal = {
  isUnavailable: boolean
  starts: Start[]
  startsOf(deliveryId: string): Start[]
  /** Ids of the deliveries whose workflow runs; of these, of those that are stuck, and since when others are paused. */
  running: Set<string>
  stuck: Set<string>
  paused: Map<string, Date>
  /** Deliveries whose workflow was started from the recorded outcome, in order. */
  followed: { deliveryId: string; attempts: number }[]
  /** Ids of deliveries whose workflow was woken, stopped, or described. */
  woken: string[]
  stopped: string[]
  described: string[]
  workflows: DeliveryWorkflows
  terminateIfStuck: TerminateIfStuck
}

export function createFakeTemporal(): FakeTemporal {
  const note = (act: () => void): Promise<void> => {
    if (temporal.isUnavailable) return Promise.reject(new TemporalUnavailableError('Temporal is unavailable'))
    act()
    return Promise.resolve()
  }
  const temporal: FakeTemporal = {
    isUnavailable: false,
    starts: [],
    startsOf: (id) => temporal.starts.filter(({ deliveryId }) => deliveryId === id),
    running: new Set(),
    stuck: new Set(),
    paused: new Map(),
    followed: [],
    woken: [],
    stopped: [],
    described: [],
    workflows: {
      async start({ deliveryId, webhookId }, next, { queue } = {}) {
        const runs = temporal.paused.has(deliveryId) || temporal.running.has(deliveryId)
        await note(() => {
          if (runs) return
          temporal.starts.push({ deliveryId, webhookId, next, ...(queue && { queue }) })
          temporal.running.add(deliveryId)
        })
        return !runs
      },
      async startFollowing({ deliveryId }, { attempts }) {
        await note(() => temporal.followed.push({ deliveryId, attempts }))
        return true
      },
      wake: ({ deliveryId }) => note(() => temporal.woken.push(deliveryId)),
      stop: (deliveryId) => note(() => temporal.stopped.push(deliveryId)),
    },
    async terminateIfStuck(workflowId) {
      const deliveryId = workflowId.replace('delivery/', '')
      await note(() => temporal.described.push(deliveryId))
      const since = temporal.paused.get(deliveryId)
      if (since !== undefined) return { state: 'paused', since }
      if (temporal.stuck.delete(deliveryId) && temporal.running.delete(deliveryId))
        return { state: 'stuck', runId: 'run', taskAttempts: 3, cause: 'non_determinism' }
      return { state: temporal.running.has(deliveryId) ? 'alive' : 'gone' }
    },
  }
  return temporal
}

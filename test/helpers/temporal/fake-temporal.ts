import type { AttemptQueue } from '../../../src/domain/attempt-outcome.ts'
import type { DeliveryWorkflows } from '../../../src/temporal/delivery-workflows.ts'
import { TemporalUnavailableError } from '../../../src/temporal/calls.ts'
import type { TerminateIfStuck } from '../../../src/temporal/workflow-progress.ts'

type Start = {
  deliveryId: string
  webhookId: string
  next: { number: number; dueAtMs: number | null }
  queue?: AttemptQueue
}

/** Temporal at its typed seam: notes what it is asked; can be away. It makes no attempts. */
export type FakeTemporal = {
  isUnavailable: boolean
  starts: Start[]
  startsOf(deliveryId: string): Start[]
  /** Deliveries whose workflow was started from the recorded outcome, in order. */
  followed: { deliveryId: string; attempts: number }[]
  /** Since when the workflows of these deliveries are paused. */
  paused: Map<string, Date>
  /** The workflow of this delivery runs, and goes on. */
  unpause(deliveryId: string): void
  /** Ids of deliveries whose workflow was woken. */
  woken: string[]
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
    followed: [],
    paused: new Map(),
    unpause(deliveryId) {
      temporal.paused.delete(deliveryId)
      temporal.starts.push({
        deliveryId,
        webhookId: '',
        next: { number: 1, dueAtMs: null },
      })
    },
    woken: [],
    workflows: {
      async start({ deliveryId, webhookId }, next, { queue } = {}) {
        const runs = temporal.paused.has(deliveryId) || temporal.startsOf(deliveryId).length > 0
        await note(
          () => runs || temporal.starts.push({ deliveryId, webhookId, next, ...(queue && { queue }) }),
        )
        return !runs
      },
      async startFollowing({ deliveryId }, { attempts }) {
        await note(() => temporal.followed.push({ deliveryId, attempts }))
        return true
      },
      wake: ({ deliveryId }) => note(() => temporal.woken.push(deliveryId)),
      stop: () => note(() => undefined),
    },
    async terminateIfStuck(workflowId) {
      await note(() => undefined)
      const deliveryId = workflowId.replace('delivery/', '')
      const since = temporal.paused.get(deliveryId)
      if (since !== undefined) return { state: 'paused', since }
      return { state: temporal.startsOf(deliveryId).length > 0 ? 'alive' : 'gone' }
    },
  }
  return temporal
}

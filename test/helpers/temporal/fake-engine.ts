import type { AttemptKind } from '../../../src/domain/task-queues.ts'
import type { DeliveryWorkflows } from '../../../src/temporal/delivery-workflows.ts'
import { EngineAwayError } from '../../../src/temporal/engine-away.ts'
import type { TerminateIfStuck } from '../../../src/temporal/workflow-progress.ts'

type Start = {
  deliveryId: string
  webhookId: string
  next: { number: number; dueAtMs: number | null }
  again: boolean
  kind?: AttemptKind
}

/** The engine at its typed seam: notes what it is asked; can be away. It makes no attempts. */
export type FakeEngine = {
  away: boolean
  starts: Start[]
  startsOf(deliveryId: string): Start[]
  /** Deliveries whose workflow was started from the recorded outcome, in order. */
  followed: { deliveryId: string; attempts: number }[]
  /** Ids of deliveries whose workflow was woken. */
  woken: string[]
  workflows: DeliveryWorkflows
  terminateIfStuck: TerminateIfStuck
}

export function createFakeEngine(): FakeEngine {
  const note = (act: () => void): Promise<void> => {
    if (engine.away) return Promise.reject(new EngineAwayError('the engine is away'))
    act()
    return Promise.resolve()
  }
  const engine: FakeEngine = {
    away: false,
    starts: [],
    startsOf: (id) => engine.starts.filter(({ deliveryId }) => deliveryId === id),
    followed: [],
    woken: [],
    workflows: {
      async start({ deliveryId, webhookId }, next, { again, kind }) {
        const runs = again && engine.startsOf(deliveryId).length > 0
        await note(
          () => runs || engine.starts.push({ deliveryId, webhookId, next, again, ...(kind && { kind }) }),
        )
        return !runs
      },
      follow: ({ deliveryId }, attempts) => note(() => engine.followed.push({ deliveryId, attempts })),
      wake: ({ deliveryId }) => note(() => engine.woken.push(deliveryId)),
      stop: () => note(() => undefined),
    },
    async terminateIfStuck(workflowId) {
      await note(() => undefined)
      const deliveryId = workflowId.replace('delivery/', '')
      return { state: engine.startsOf(deliveryId).length > 0 ? 'alive' : 'gone' }
    },
  }
  return engine
}

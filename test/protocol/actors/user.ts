import type { Step } from '../explore.ts'
import { EVENT_KEYS } from '../product.ts'
import { withTask, type State, type Task } from '../state.ts'
import { TASK_MS, type Actor, type Context } from './context.ts'
import type { Row } from '../image.ts'
import { takes } from './webhook.ts'

/** One user, who may do anything at any moment. */
export const user: Actor = (state, context) => {
  const { users } = context.options
  const { image } = state
  const erasures = users.includes('erase')
    ? image.delivery.flatMap((row, delivery) => erasure(row, state, delivery, context))
    : []
  if (isDeleted(state)) return erasures
  return [
    ...erasures,
    ...(users.includes('switch') || users.includes('narrow') ? changes(state, context) : []),
    ...(users.includes('retry') ? retries(state, context) : []),
    ...(users.includes('discard') ? discards(state, context) : []),
    ...(users.includes('delete') ? [deletion(state, context)] : []),
  ]
}

const isDeleted = (state: State): boolean => state.image.webhook[0]!['deleted_at'] !== null

function changes(state: State, { product, options }: Context): Step<State>[] {
  const [webhook] = state.image.webhook
  const enabled = webhook!['enabled'] === true
  const keys = webhook!['subscribed_event_keys'] as string[]
  const change = (label: string, to: { enabled: boolean; keys: readonly string[] }): Step<State> => ({
    kind: 'user',
    label: `the user ${label}`,
    take: async () => {
      const { image } = await product.changeWebhook(state, to)
      return withUnwanted({ ...state, image, happened: { type: 'switched', delivery: -1 } }, state)
    },
  })
  const steps: Step<State>[] = []
  if (options.users.includes('switch'))
    steps.push(
      change(enabled ? 'switches the webhook off' : 'switches the webhook on', { enabled: !enabled, keys }),
    )
  if (options.users.includes('narrow')) {
    const isNarrow = keys.length < EVENT_KEYS.length
    const label = isNarrow ? 'adds the event key of D0' : 'removes the event key of D0'
    steps.push(change(label, { enabled, keys: isNarrow ? EVENT_KEYS : EVENT_KEYS.slice(1) }))
  }
  return steps
}

/** Since when the webhook takes each delivery no more of which a POST may just begin: the answer of the request. */
function withUnwanted(next: State, before: State): State {
  const unwantedForMs = before.unwantedForMs.map((forMs, delivery) => {
    const mayBegin = before.runs.some((run) => run.delivery === delivery && run.phase === 'claimed')
    return takes(next, delivery) || !mayBegin ? null : (forMs ?? 0)
  })
  return { ...next, unwantedForMs }
}

function retries(state: State, { product, options }: Context): Step<State>[] {
  const open = state.image.delivery.flatMap((row, delivery) =>
    row['state'] === 'completed' || Number(row['attempts']) >= options.maxAttempts ? [] : [delivery],
  )
  const retry = (label: string, deliveries: number[]): Step<State> => ({
    kind: 'user',
    label: `the user ${label}`,
    take: async () => {
      const { image, result } = await product.requestRetry(state, deliveries)
      const toWake = result.filter((requested) => requested.state === 'waiting')
      if (result.length === 0) return null
      const wakes = toWake.map(({ deliveryId, attempts }): Task => ({
        kind: 'wake',
        delivery: Number(deliveryId.at(-1)),
        inMs: TASK_MS,
        attempts,
      }))
      const delivery = deliveries.length === 1 ? deliveries[0]! : -1
      // The runs of what was at rest are counted anew.
      const posts = state.posts.map((sent, index) =>
        wakes.some((wake) => wake.delivery === index) ? 0 : sent,
      )
      return {
        ...state,
        image,
        posts,
        tasks: wakes.reduce<readonly Task[]>(withTask, state.tasks),
        happened: { type: 'retried', delivery },
      }
    },
  })
  const single = open.map((delivery) => retry(`requests a retry of D${delivery}`, [delivery]))
  return open.length < 2 ? single : [...single, retry('requests retries of all', open)]
}

function discards(state: State, { product }: Context): Step<State>[] {
  return state.image.delivery.flatMap((row, delivery) =>
    row['completed_at'] !== null && row['state'] !== 'failed'
      ? []
      : {
          kind: 'user' as const,
          label: `the user discards D${delivery}`,
          take: async () => {
            const { image, result } = await product.discard(state, delivery)
            return result === 0
              ? null
              : { ...state, image, happened: { type: 'discarded' as const, delivery } }
          },
        },
  )
}

function deletion(state: State, { product }: Context): Step<State> {
  return {
    kind: 'user',
    label: 'the user deletes the webhook',
    take: async () => {
      const { image } = await product.deleteWebhook(state)
      return withUnwanted({ ...state, image, happened: { type: 'deleted', delivery: -1 } }, state)
    },
  }
}

/** Two transactions, of a process that may die in between. */
function erasure(row: Row, state: State, delivery: number, { product }: Context): Step<State>[] {
  if (row['is_erased'] !== true)
    return [
      {
        kind: 'user',
        label: `the user erases the payload of D${delivery}`,
        take: async () => {
          const { image } = await product.erase(state, delivery)
          return withUnwanted({ ...state, image, happened: { type: 'erased', delivery } }, state)
        },
      },
    ]
  if (row['completed_at'] !== null) return []
  return [
    {
      kind: 'user',
      label: `the erasure stops D${delivery}`,
      take: async () => {
        const { image, result } = await product.stopErased(state, delivery)
        return result === 0 ? null : { ...state, image, happened: { type: 'stopped_erased', delivery } }
      },
    },
  ]
}

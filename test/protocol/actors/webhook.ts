import { EVENT_KEYS } from '../product.ts'
import { rowOf, type State } from '../state.ts'

/** The webhook is live and subscribed to the key of the delivery. */
export function covers(state: State, delivery: number): boolean {
  const [webhook] = state.image.webhook
  const keys = webhook!['subscribed_event_keys'] as string[]
  return (
    webhook!['enabled'] === true && webhook!['deleted_at'] === null && keys.includes(EVENT_KEYS[delivery]!)
  )
}

/** The delivery may be attempted: its webhook covers it, and its payload is not erased. */
export function takes(state: State, delivery: number): boolean {
  return covers(state, delivery) && rowOf(state, delivery)?.['is_erased'] !== true
}

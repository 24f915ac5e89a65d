/**
 * States of a delivery (spec 3.1): `pending` committed, no attempt yet · `in_progress` · `waiting` for a retry ·
 * `completed` · `failed` permanently · `stopped` for a {@link StopReason}.
 */
export const DELIVERY_STATES = [
  'pending',
  'in_progress',
  'waiting',
  'completed',
  'failed',
  'stopped',
] as const

export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** The states in which no attempt follows by itself. */
export type FinalState = Extract<DeliveryState, 'completed' | 'failed' | 'stopped'>

export function isFinal(state: DeliveryState): state is FinalState {
  return state === 'completed' || state === 'failed' || state === 'stopped'
}

/**
 * Why a delivery is stopped: its webhook was disabled, deleted or no longer subscribed to its key while it waited, a
 * user discarded it, it was a test event that failed, or its payload was erased.
 */
export const STOP_REASONS = [
  'webhook_disabled',
  'webhook_deleted',
  'unsubscribed',
  'discarded',
  'test_failed',
  'payload_erased',
] as const

export type StopReason = (typeof STOP_REASONS)[number]

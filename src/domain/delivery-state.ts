/**
 * States of a delivery (spec 3.1): `pending` committed, no attempt yet · `in_progress` · `waiting` for a retry ·
 * `completed` · `failed` permanently · `stopped` because the webhook was disabled or deleted, or by a person.
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

import type { PushSubscriptionRow } from '../../db/queries/push-subscriptions.ts'

/** Presents a push subscription. Its keys have no presenter. */
export function presentPushSubscription({ id, endpoint, createdAt }: PushSubscriptionRow) {
  return { id, endpoint, createdAt: createdAt.toISOString() }
}

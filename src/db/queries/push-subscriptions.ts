import { Not } from 'typeorm'
import type { Db } from '../db.ts'
import { Member } from '../entities/member.ts'
import { PushSubscription } from '../entities/push-subscription.ts'
import { returning } from '../entity-of-row.ts'

const SHOWN = { id: true, endpoint: true, createdAt: true } as const
const TARGET = { id: true, memberId: true, endpoint: true, p256dh: true, auth: true } as const

/** A push subscription as the API shows it to its member: no keys. */
export type PushSubscriptionRow = Pick<PushSubscription, keyof typeof SHOWN>

/** What sending a push message takes. Endpoint and keys are secrets of the member. */
export type PushTarget = Pick<PushSubscription, keyof typeof TARGET>

/** Returns a member's own subscriptions, oldest first. */
export function listPushSubscriptions(
  db: Db,
  organisationId: string,
  memberId: string,
): Promise<PushSubscriptionRow[]> {
  const order = { createdAt: 'ASC', id: 'ASC' } as const
  return db
    .getRepository(PushSubscription)
    .find({ select: SHOWN, where: { organisationId, memberId }, order })
}

/** Locks the member's row until the transaction ends. False when there is no such member. */
export async function lockMember(db: Db, organisationId: string, memberId: string): Promise<boolean> {
  const where = { organisationId, id: memberId }
  const lock = { mode: 'for_no_key_update' } as const
  return (await db.getRepository(Member).findOne({ select: { id: true }, where, lock })) !== null
}

/**
 * Adds a subscription, or gives the member's one with that endpoint the new keys; null when the member has `max` others.
 * The caller holds the member's lock, so that the count sees what others have committed. `id` is the one of the row that
 * was there, if any.
 */
export async function upsertPushSubscription(
  db: Db,
  subscription: PushTarget & Pick<PushSubscription, 'organisationId'>,
  max: number,
): Promise<PushSubscriptionRow | null> {
  const { organisationId, memberId, endpoint } = subscription
  const subscriptions = db.getRepository(PushSubscription)
  if ((await subscriptions.countBy({ organisationId, memberId, endpoint: Not(endpoint) })) >= max) return null
  const upsert = subscriptions
    .createQueryBuilder()
    .insert()
    .values(subscription)
    .orUpdate(['p256dh', 'auth'], ['organisation_id', 'member_id', 'endpoint'])
  const [written] = await returning(upsert, SHOWN)
  return written ?? null
}

/** Deletes one of a member's own subscriptions. False when the member has none of that id. */
export async function deleteOwnPushSubscription(
  db: Db,
  organisationId: string,
  memberId: string,
  id: string,
): Promise<boolean> {
  const { affected } = await db.getRepository(PushSubscription).delete({ organisationId, memberId, id })
  return affected === 1
}

/** Deletes all of a member's own subscriptions; returns how many. */
export async function deleteOwnPushSubscriptions(
  db: Db,
  organisationId: string,
  memberId: string,
): Promise<number> {
  const { affected } = await db.getRepository(PushSubscription).delete({ organisationId, memberId })
  return affected ?? 0
}

/** Returns one subscription of any member; null when it was removed. */
export function findPushSubscription(db: Db, organisationId: string, id: string): Promise<PushTarget | null> {
  return db.getRepository(PushSubscription).findOne({ select: TARGET, where: { organisationId, id } })
}

/** Deletes a subscription that its push service no longer knows; one that is gone already is no error. */
export async function deletePushSubscription(db: Db, organisationId: string, id: string): Promise<void> {
  await db.getRepository(PushSubscription).delete({ organisationId, id })
}

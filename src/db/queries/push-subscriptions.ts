// Hand-written where the API key behind a subscription decides whether it counts.
import { Not } from 'typeorm'
import { sql, type Db, returning } from '../connection/db.ts'
import { Member, PushSubscription } from '../entities/organisation.ts'
import { IS_IN_FORCE } from './api-keys.ts'

const SHOWN = { id: true, endpoint: true, createdAt: true } as const

/** A push subscription as the API shows it to its member: no keys. */
export type PushSubscriptionRow = Pick<PushSubscription, keyof typeof SHOWN>

/** What sending a push message takes. Endpoint and keys are secrets of the member. */
export type PushTarget = Pick<PushSubscription, 'id' | 'memberId' | 'endpoint' | 'p256dh' | 'auth'>

/** What a subscription ends with: the session in which it was made, and the API key behind it. */
export type PushOwner = Pick<PushSubscription, 'sessionHash' | 'apiKeyId' | 'keyHash'>

/** Whether the API key behind a subscription still has the value that made it. A portal link's session has no key. */
const HAS_VALID_KEY = `(push_subscription.api_key_id IS NULL OR EXISTS (
  SELECT 1 FROM api_key
   WHERE id = push_subscription.api_key_id AND hash = push_subscription.key_hash AND ${IS_IN_FORCE}))`

/**
 * Deletes an organisation's subscriptions whose API key is revoked, expired, or has another value by now. Waits for no
 * lock: a row that is locked is being deleted or renewed.
 */
export async function deleteEndedPushSubscriptions(db: Db, organisationId: string): Promise<void> {
  await sql(
    `DELETE FROM push_subscription WHERE id = ANY(ARRAY(
       SELECT id FROM push_subscription
        WHERE organisation_id = :organisationId AND NOT ${HAS_VALID_KEY} FOR UPDATE SKIP LOCKED))`,
    { organisationId },
  ).rows(db)
}

/** Returns a member's own subscriptions, oldest first. */
export function listPushSubscriptions(
  db: Db,
  organisationId: string,
  memberId: string,
): Promise<PushSubscriptionRow[]> {
  return sql(
    `SELECT id, endpoint, created_at AS "createdAt" FROM push_subscription
      WHERE organisation_id = :organisationId AND member_id = :memberId AND ${HAS_VALID_KEY}
      ORDER BY created_at, id`,
    { organisationId, memberId },
  ).rows(db)
}

/** Has a member's subscriptions of a session belong to the one that replaces it. */
export async function movePushSubscriptions(
  db: Db,
  { organisationId, memberId }: Pick<PushSubscription, 'organisationId' | 'memberId'>,
  from: Buffer,
  owner: PushOwner,
): Promise<void> {
  await db.getRepository(PushSubscription).update({ organisationId, memberId, sessionHash: from }, owner)
}

/** Locks the member's row until the transaction ends. False when there is no such member. */
export async function lockMember(
  db: Db,
  organisationId: string,
  memberId: string,
  mode: 'for_no_key_update' | 'pessimistic_write' = 'for_no_key_update',
): Promise<boolean> {
  const where = { organisationId, id: memberId }
  const lock = { mode } as const
  return (await db.getRepository(Member).findOne({ select: { id: true }, where, lock })) !== null
}

/**
 * Adds a subscription, or gives the member's one with that endpoint the new keys and owner; null when the member has `max` others.
 * The caller holds the member's lock, so that the count sees what others have committed. `id` is the one of the row that
 * was there, if any.
 */
export async function upsertPushSubscription(
  db: Db,
  subscription: PushTarget & Partial<PushOwner> & Pick<PushSubscription, 'organisationId'>,
  max: number,
): Promise<PushSubscriptionRow | null> {
  const { organisationId, memberId, endpoint } = subscription
  const subscriptions = db.getRepository(PushSubscription)
  if ((await subscriptions.countBy({ organisationId, memberId, endpoint: Not(endpoint) })) >= max) return null
  const upsert = subscriptions
    .createQueryBuilder()
    .insert()
    .values(subscription)
    .orUpdate(
      ['p256dh', 'auth', 'session_hash', 'api_key_id', 'key_hash'],
      ['organisation_id', 'member_id', 'endpoint'],
    )
  const [written] = await returning(upsert, SHOWN)
  return written ?? null
}

/** Returns one subscription of any member; null when it was removed, or its API key has ended. */
export function findPushSubscription(db: Db, organisationId: string, id: string): Promise<PushTarget | null> {
  return sql(
    `SELECT id, member_id AS "memberId", endpoint, p256dh, auth FROM push_subscription
      WHERE organisation_id = :organisationId AND id = :id AND ${HAS_VALID_KEY}`,
    { organisationId, id },
  ).first(db)
}

/** Deletes one subscription, or all or one of a member's own; returns how many there were. */
export async function deletePushSubscriptions(
  db: Db,
  which: Pick<PushSubscription, 'organisationId'> &
    (Pick<PushSubscription, 'id'> | (Pick<PushSubscription, 'memberId'> & { id?: string })),
): Promise<number> {
  const { affected } = await db.getRepository(PushSubscription).delete(which)
  return affected ?? 0
}

import { firstRow, rows, type Db } from '../db.ts'

/** A push subscription as the API shows it to its member: no keys. */
export type PushSubscriptionRow = { id: string; endpoint: string; createdAt: Date }

/** What sending a push message takes. Endpoint and keys are secrets of the member. */
export type PushTarget = { id: string; memberId: string; endpoint: string; p256dh: string; auth: string }

const SHOWN = `id, endpoint, created_at AS "createdAt"`

/** A member's own subscriptions, oldest first. */
export async function listPushSubscriptions(
  db: Db,
  organisationId: string,
  memberId: string,
): Promise<PushSubscriptionRow[]> {
  return rows(
    db,
    `SELECT ${SHOWN} FROM push_subscription WHERE organisation_id = $1 AND member_id = $2 ORDER BY created_at, id`,
    [organisationId, memberId],
  )
}

/** Locks the member's row until the transaction ends. False when there is no such member. */
export async function lockMember(db: Db, organisationId: string, memberId: string): Promise<boolean> {
  const found = await firstRow(
    db,
    `SELECT 1 FROM member WHERE organisation_id = $1 AND id = $2 FOR NO KEY UPDATE`,
    [organisationId, memberId],
  )
  return found !== null
}

/**
 * Adds a subscription, or gives the member's one with that endpoint the new keys; null when the member has `max` others.
 * The caller holds the member's lock, taken in a statement before this one: only then does the count see what others
 * have committed. `id` is the one of the row that was there, if any.
 */
export async function upsertPushSubscription(
  db: Db,
  subscription: PushTarget & { organisationId: string },
  max: number,
): Promise<PushSubscriptionRow | null> {
  const { id, organisationId, memberId, endpoint, p256dh, auth } = subscription
  return firstRow(
    db,
    `INSERT INTO push_subscription (id, organisation_id, member_id, endpoint, p256dh, auth)
     SELECT $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text
      WHERE (SELECT count(*) FROM push_subscription
              WHERE organisation_id = $2 AND member_id = $3 AND endpoint <> $4) < $7
     ON CONFLICT (organisation_id, member_id, endpoint) DO UPDATE
       SET p256dh = EXCLUDED.p256dh, auth = EXCLUDED.auth
     RETURNING ${SHOWN}`,
    [id, organisationId, memberId, endpoint, p256dh, auth, max],
  )
}

/** Deletes one of a member's own subscriptions. False when the member has none of that id. */
export async function deleteOwnPushSubscription(
  db: Db,
  organisationId: string,
  memberId: string,
  id: string,
): Promise<boolean> {
  const deleted = await firstRow(
    db,
    `DELETE FROM push_subscription WHERE organisation_id = $1 AND member_id = $2 AND id = $3 RETURNING id`,
    [organisationId, memberId, id],
  )
  return deleted !== null
}

/** Deletes all of a member's own subscriptions; returns how many. */
export async function deleteOwnPushSubscriptions(
  db: Db,
  organisationId: string,
  memberId: string,
): Promise<number> {
  const deleted = await rows(
    db,
    `DELETE FROM push_subscription WHERE organisation_id = $1 AND member_id = $2 RETURNING id`,
    [organisationId, memberId],
  )
  return deleted.length
}

/** One subscription of whichever member; null when it was removed. */
export async function findPushSubscription(
  db: Db,
  organisationId: string,
  id: string,
): Promise<PushTarget | null> {
  return firstRow(
    db,
    `SELECT id, member_id AS "memberId", endpoint, p256dh, auth FROM push_subscription
      WHERE organisation_id = $1 AND id = $2`,
    [organisationId, id],
  )
}

/** Deletes a subscription that its push service no longer knows; one that is gone already is no error. */
export async function deletePushSubscription(db: Db, organisationId: string, id: string): Promise<void> {
  await rows(db, `DELETE FROM push_subscription WHERE organisation_id = $1 AND id = $2`, [organisationId, id])
}

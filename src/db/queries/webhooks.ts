import type { StopReason } from '../../domain/delivery-state.ts'
import { TEST_EVENT_KEY, WILDCARD } from '../../domain/permissions.ts'
import { firstRow, rows, type Db } from '../db.ts'

/** A webhook as the API shows it: no secret. */
export type WebhookRow = {
  id: string
  url: string
  subscribedEventKeys: string[]
  enabled: boolean
  createdAt: Date
  updatedAt: Date
}

const COLUMNS = `id, url, subscribed_event_keys AS "subscribedEventKeys", enabled,
  created_at AS "createdAt", updated_at AS "updatedAt"`

/**
 * SQL for whether `webhook` (an alias) receives events with the key that the expression `key` gives. The subscription is
 * the authority over attempts and retries: `coversEventKey` states the same rule for a webhook that was read.
 */
export function coversSql(key: string, webhook = 'w'): string {
  const keys = `${webhook}.subscribed_event_keys`
  return `(${keys} = ARRAY['${WILDCARD}'] OR ${key} = ANY (${keys} || '${TEST_EVENT_KEY}'::text))`
}

/** SQL for the same of the delivery with alias `delivery`: two look-ups by primary key for each row. */
export function isCoveredSql(delivery: string): string {
  return `(SELECT ${coversSql('e.key')} FROM webhook w, event e WHERE w.id = ${delivery}.webhook_id AND e.id = ${delivery}.event_id)`
}

/** SQL for why webhook `w` takes no delivery with the key that the expression `key` gives; null where it does. */
export function stopReasonSql(key: string): string {
  return `CASE WHEN w.deleted_at IS NOT NULL THEN 'webhook_deleted' WHEN NOT w.enabled THEN 'webhook_disabled'
               WHEN NOT ${coversSql(key)} THEN 'unsubscribed' END`
}

/** The organisation's webhooks, oldest first. */
export async function listWebhooks(db: Db, organisationId: string): Promise<WebhookRow[]> {
  return rows(
    db,
    `SELECT ${COLUMNS} FROM webhook WHERE organisation_id = $1 AND deleted_at IS NULL ORDER BY created_at, id`,
    [organisationId],
  )
}

/** How many webhooks the organisation has, enabled or not. */
export async function countWebhooks(db: Db, organisationId: string): Promise<number> {
  const found = await firstRow<{ count: number }>(
    db,
    `SELECT count(*)::int AS count FROM webhook WHERE organisation_id = $1 AND deleted_at IS NULL`,
    [organisationId],
  )
  return found?.count ?? 0
}

export async function findWebhook(db: Db, organisationId: string, id: string): Promise<WebhookRow | null> {
  return firstRow(
    db,
    `SELECT ${COLUMNS} FROM webhook WHERE organisation_id = $1 AND id = $2 AND deleted_at IS NULL`,
    [organisationId, id],
  )
}

/** The same, with the row locked until the transaction ends. */
export async function lockWebhook(db: Db, organisationId: string, id: string): Promise<WebhookRow | null> {
  return firstRow(
    db,
    `SELECT ${COLUMNS} FROM webhook WHERE organisation_id = $1 AND id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE`,
    [organisationId, id],
  )
}

/**
 * Why a delivery of `eventKey` is stopped, or null while the webhook takes such deliveries. Its row is locked against a
 * change of that until the transaction ends.
 */
export async function lockStopReason(
  db: Db,
  organisationId: string,
  id: string,
  eventKey: string,
): Promise<StopReason | null> {
  const found = await firstRow<{ reason: StopReason | null }>(
    db,
    `SELECT ${stopReasonSql('$3::text')} AS reason FROM webhook w
      WHERE w.organisation_id = $1 AND w.id = $2 FOR SHARE`,
    [organisationId, id, eventKey],
  )
  return found === null ? 'webhook_deleted' : found.reason
}

/** Where a webhook's deliveries of the subscribed keys go, with the sealed secret they are signed with. */
export type Target = { url: string; secret: string | null; subscribedEventKeys: string[] }

/** Null when the webhook takes no deliveries. */
export async function findTarget(db: Db, organisationId: string, id: string): Promise<Target | null> {
  return firstRow(
    db,
    `SELECT url, secret, subscribed_event_keys AS "subscribedEventKeys"
       FROM webhook WHERE organisation_id = $1 AND id = $2 AND enabled AND deleted_at IS NULL`,
    [organisationId, id],
  )
}

/** The sealed signing secret, or null when the webhook is unknown or deleted. */
export async function findSealedSecret(db: Db, organisationId: string, id: string): Promise<string | null> {
  const found = await firstRow<{ secret: string | null }>(
    db,
    `SELECT secret FROM webhook WHERE organisation_id = $1 AND id = $2 AND deleted_at IS NULL`,
    [organisationId, id],
  )
  return found?.secret ?? null
}

export async function insertWebhook(
  db: Db,
  webhook: {
    id: string
    organisationId: string
    url: string
    subscribedEventKeys: string[]
    enabled: boolean
    secret: string
  },
): Promise<WebhookRow> {
  const { id, organisationId, url, subscribedEventKeys, enabled, secret } = webhook
  const [created] = await rows<WebhookRow>(
    db,
    `INSERT INTO webhook (id, organisation_id, url, subscribed_event_keys, enabled, secret)
     VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${COLUMNS}`,
    [id, organisationId, url, subscribedEventKeys, enabled, secret],
  )
  if (created === undefined) throw new Error('INSERT gave no row')
  return created
}

/** Writes the three fields a member can change; the row is locked by the caller (`lockWebhook`). */
export async function updateWebhook(
  db: Db,
  organisationId: string,
  webhook: Pick<WebhookRow, 'id' | 'url' | 'subscribedEventKeys' | 'enabled'>,
): Promise<WebhookRow | null> {
  return firstRow(
    db,
    `UPDATE webhook SET url = $3, subscribed_event_keys = $4, enabled = $5, updated_at = now()
      WHERE organisation_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING ${COLUMNS}`,
    [organisationId, webhook.id, webhook.url, webhook.subscribedEventKeys, webhook.enabled],
  )
}

/** Deletes softly and wipes the secret. False when there is no such webhook. */
export async function deleteWebhook(db: Db, organisationId: string, id: string): Promise<boolean> {
  const deleted = await firstRow(
    db,
    `UPDATE webhook SET deleted_at = now(), updated_at = now(), enabled = false, secret = NULL
      WHERE organisation_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING id`,
    [organisationId, id],
  )
  return deleted !== null
}

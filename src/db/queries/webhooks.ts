import { IsNull, type FindOptionsWhere, type QueryDeepPartialEntity } from 'typeorm'
import { Webhook } from '../entities/webhook.ts'
import { isLockTimeout } from '../connection/connection-errors.ts'
import { returning, sql, type Db } from '../connection/db.ts'
import { WILDCARD } from '../../domain/permissions.ts'
import { notFound } from '../../problem-error.ts'

const SHOWN = {
  id: true,
  url: true,
  description: true,
  subscribedEventKeys: true,
  enabled: true,
  heldAt: true,
  holdReason: true,
  createdAt: true,
  updatedAt: true,
} as const

/** A webhook as the API shows it: no secret. */
export type WebhookRow = Pick<Webhook, keyof typeof SHOWN>

function notDeleted(organisationId: string): FindOptionsWhere<Webhook> {
  return { organisationId, deletedAt: IsNull() }
}

/** Returns the organisation's webhooks, oldest first. */
export function listWebhooks(db: Db, organisationId: string): Promise<WebhookRow[]> {
  const order = { createdAt: 'ASC', id: 'ASC' } as const
  return db.getRepository(Webhook).find({ select: SHOWN, where: notDeleted(organisationId), order })
}

/** Counts the webhooks of the organisation, enabled or not. */
export function countWebhooks(db: Db, organisationId: string): Promise<number> {
  return db.getRepository(Webhook).countBy(notDeleted(organisationId))
}

/** Counts the webhooks that take an event of each organisation and key, in their order. */
export async function countSubscribers(
  db: Db,
  audiences: readonly { organisationId: string; key: string }[],
): Promise<number[]> {
  const rows = await sql(
    `SELECT count(w.id)::int AS count
       FROM unnest(:organisationIds::text[], :keys::text[]) WITH ORDINALITY AS audience (organisation_id, key, place)
       LEFT JOIN webhook w ON w.organisation_id = audience.organisation_id AND w.deleted_at IS NULL
        AND stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, audience.key) IS NULL
      GROUP BY audience.place ORDER BY audience.place`,
    {
      organisationIds: audiences.map(({ organisationId }) => organisationId),
      keys: audiences.map(({ key }) => key),
    },
  ).rows<{ count: number }>(db)
  return rows.map(({ count }) => count)
}

export function findWebhook(db: Db, organisationId: string, id: string): Promise<WebhookRow | null> {
  return db.getRepository(Webhook).findOne({ select: SHOWN, where: { ...notDeleted(organisationId), id } })
}

/** Throws 404 where the organisation has no such webhook. */
export async function requireWebhook(db: Db, organisationId: string, id: string): Promise<WebhookRow> {
  const webhook = await findWebhook(db, organisationId, id)
  if (webhook === null) throw notFound('webhook')
  return webhook
}

const WEBHOOK_LOCK = `hashtextextended(:id, 0)`

/**
 * Locks a webhook until the transaction ends: for whatever changes the webhook or its incident, records a failure, or
 * retries or discards deliveries. The first statement of its transaction, so that the others see what was committed
 * before. An advisory lock, since row locks are not granted in order.
 */
export async function lockWebhook(db: Db, id: string): Promise<void> {
  await sql(`SELECT pg_advisory_xact_lock(${WEBHOOK_LOCK})`, { id }).rows(db)
}

/** The same without waiting. False while another transaction holds the lock, or waits for it. */
export async function tryLockWebhook(db: Db, id: string): Promise<boolean> {
  const tried = sql(`SELECT pg_try_advisory_xact_lock(${WEBHOOK_LOCK}) AS "isLocked"`, { id })
  return (await tried.one<{ isLocked: boolean }>(db)).isLocked
}

/** The same, waiting for `timeoutMs` at most. After false the transaction is aborted, and can only end. */
export async function lockWebhookWithin(db: Db, id: string, timeoutMs: number): Promise<boolean> {
  const before = await sql(
    `WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS value)
     SELECT value, set_config('lock_timeout', :timeout, true) FROM before`,
    { timeout: String(timeoutMs) },
  ).one<{ value: string }>(db)
  try {
    await lockWebhook(db, id)
  } catch (error) {
    if (isLockTimeout(error)) return false
    throw error
  }
  await sql(`SELECT set_config('lock_timeout', :timeout, true)`, { timeout: before.value }).rows(db)
  return true
}

/** The sealed signing secret, or null when the webhook is unknown or deleted. */
export async function findSealedSecret(db: Db, organisationId: string, id: string): Promise<string | null> {
  const where = { ...notDeleted(organisationId), id }
  const found = await db.getRepository(Webhook).findOne({ select: { id: true, secret: true }, where })
  return found?.secret ?? null
}

export async function insertWebhook(
  db: Db,
  webhook: Pick<
    Webhook,
    'id' | 'organisationId' | 'url' | 'description' | 'subscribedEventKeys' | 'enabled'
  > & {
    secret: string
  },
): Promise<WebhookRow> {
  const insert = db.getRepository(Webhook).createQueryBuilder().insert().values(webhook)
  const [created] = await returning(insert, SHOWN)
  if (created === undefined) throw new Error('INSERT gave no row')
  return created
}

/** Writes the fields that a member can change. The caller holds the lock of the webhook. Throws 404, here and below. */
export function updateWebhook(
  db: Db,
  organisationId: string,
  { id, ...fields }: Pick<Webhook, 'id' | 'url' | 'description' | 'subscribedEventKeys' | 'enabled'>,
): Promise<WebhookRow> {
  return change(db, organisationId, id, fields)
}

async function change(
  db: Db,
  organisationId: string,
  id: string,
  fields: QueryDeepPartialEntity<Webhook>,
): Promise<WebhookRow> {
  const update = db
    .getRepository(Webhook)
    .createQueryBuilder()
    .update()
    .set({ ...fields, updatedAt: () => 'now()' })
    .where({ ...notDeleted(organisationId), id })
  const [updated] = await returning(update, SHOWN)
  if (updated === undefined) throw notFound('webhook')
  return updated
}

/**
 * Puts an operator's hold on a webhook, which disables it, or gives the hold that it has another reason. The caller holds
 * the lock of the webhook.
 */
export function holdWebhook(
  db: Db,
  organisationId: string,
  { id, reason }: { id: string; reason: string },
): Promise<WebhookRow> {
  return change(db, organisationId, id, {
    heldAt: () => 'coalesce(held_at, now())',
    holdReason: reason,
    enabledBeforeHold: () => 'coalesce(enabled_before_hold, enabled)',
    enabled: false,
  })
}

/** Ends the operator's hold on a webhook: it is enabled again if it was before. The caller holds its lock. */
export function releaseWebhook(db: Db, organisationId: string, id: string): Promise<WebhookRow> {
  return change(db, organisationId, id, {
    enabled: () => 'coalesce(enabled_before_hold, enabled)',
    heldAt: null,
    holdReason: null,
    enabledBeforeHold: null,
  })
}

/** Deletes softly and wipes the secret. False when there is no such webhook. */
export async function deleteWebhook(db: Db, organisationId: string, id: string): Promise<boolean> {
  const { affected } = await db
    .getRepository(Webhook)
    .update(
      { ...notDeleted(organisationId), id },
      { deletedAt: () => 'now()', updatedAt: () => 'now()', enabled: false, secret: null },
    )
  return affected === 1
}

/** An event key, and how many webhooks of all organisations subscribe to it by name. */
export type SubscribedKey = { eventKey: string; webhooks: number }

/** Returns the subscribed event keys that are not among `known`, by name. Reads every webhook: for use at start. */
export function findUnknownSubscribedKeys(db: Db, known: readonly string[]): Promise<SubscribedKey[]> {
  return sql(
    `SELECT key AS "eventKey", count(*)::int AS webhooks
       FROM webhook, unnest(subscribed_event_keys) AS key
      WHERE deleted_at IS NULL AND key <> '${WILDCARD}' AND key <> ALL (:known)
      GROUP BY key ORDER BY key`,
    { known },
  ).rows<SubscribedKey>(db)
}

// Hand-written: the key that a secret is under is read out of its text by PostgreSQL, for all secrets at once.

/**
 * A signing secret of any organisation, for operators of the key ring. No member gets here: these are the only queries on
 * webhooks that take no organisation.
 */
export type SealedSecret = { webhookId: string; secret: string }

/**
 * The key that a secret is under; null when the text is not a sealed secret. It is taken out by its whole pattern, so
 * that a secret which stands there in clear is never taken for the name of a key and shown.
 */
const KEY_ID = `substring(secret from '^([A-Za-z0-9_-]{1,32})[|]')`

/** How many secrets are under each key. */
export async function countByKey(db: Db): Promise<{ keyId: string | null; count: number }[]> {
  return sql(
    `SELECT ${KEY_ID} AS "keyId", count(*)::int AS count FROM webhook WHERE secret IS NOT NULL GROUP BY 1 ORDER BY 1`,
  ).rows(db)
}

/** Up to `perKey` secrets under each key, the newest first: to try the key ring on. */
export async function sampleSealedSecrets(
  db: Db,
  perKey: number,
): Promise<(SealedSecret & { keyId: string })[]> {
  return sql(
    `SELECT "keyId", "webhookId", secret
       FROM (SELECT ${KEY_ID} AS "keyId", id AS "webhookId", secret,
                    row_number() OVER (PARTITION BY ${KEY_ID} ORDER BY id DESC) AS number
               FROM webhook WHERE secret IS NOT NULL) AS sealed
      WHERE "keyId" IS NOT NULL AND number <= :perKey
      ORDER BY "keyId", number`,
    { perKey },
  ).rows(db)
}

/** The next secrets that are not under `keyId`, after the webhook `after` in the order of ids. */
export async function listSecretsNotUnder(
  db: Db,
  { keyId, after, limit }: { keyId: string; after: string; limit: number },
): Promise<SealedSecret[]> {
  return sql(
    `SELECT id AS "webhookId", secret FROM webhook
      WHERE secret IS NOT NULL AND ${KEY_ID} IS DISTINCT FROM :keyId AND id > :after ORDER BY id LIMIT :limit`,
    { keyId, after, limit },
  ).rows(db)
}

/** Puts `sealed` in the place of `before`. False when that is no longer there: the webhook is gone or was changed. */
export async function replaceSealedSecret(
  db: Db,
  webhookId: string,
  before: string,
  sealed: string,
): Promise<boolean> {
  const replaced = await sql(
    `UPDATE webhook SET secret = :sealed WHERE id = :webhookId AND secret = :before RETURNING id`,
    { webhookId, before, sealed },
  ).first(db)
  return replaced !== null
}

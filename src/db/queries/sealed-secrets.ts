// Hand-written: the key that a secret is under is read out of its text by PostgreSQL, for all secrets at once.
import { sql, type Db } from '../connection/db.ts'

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

import { firstRow, rows, type Db } from '../db.ts'

/**
 * The signing secrets of all organisations, for those who look after the key ring. No member gets here: these are the
 * only queries on webhooks that take no organisation.
 */
export type SealedSecret = { webhookId: string; secret: string }

/**
 * The key that a secret is under; null when the text is not a sealed secret. It is taken out by its whole pattern, so
 * that a secret which stands there in clear is never taken for the name of a key and shown.
 */
const KEY_ID = `substring(secret from '^([A-Za-z0-9_-]{1,32})[|]')`

/** How many secrets are under each key. */
export async function countByKey(db: Db): Promise<{ keyId: string | null; count: number }[]> {
  return rows(
    db,
    `SELECT ${KEY_ID} AS "keyId", count(*)::int AS count FROM webhook WHERE secret IS NOT NULL GROUP BY 1 ORDER BY 1`,
  )
}

/** Up to `perKey` secrets under each key, the newest first: to try the key ring on. */
export async function sampleSealedSecrets(
  db: Db,
  perKey: number,
): Promise<(SealedSecret & { keyId: string })[]> {
  return rows(
    db,
    `SELECT "keyId", "webhookId", secret
       FROM (SELECT ${KEY_ID} AS "keyId", id AS "webhookId", secret,
                    row_number() OVER (PARTITION BY ${KEY_ID} ORDER BY id DESC) AS number
               FROM webhook WHERE secret IS NOT NULL) AS sealed
      WHERE "keyId" IS NOT NULL AND number <= $1
      ORDER BY "keyId", number`,
    [perKey],
  )
}

/** The next secrets that are not under `keyId`, after the webhook `after` in the order of ids. */
export async function listSecretsNotUnder(
  db: Db,
  { keyId, after, limit }: { keyId: string; after: string; limit: number },
): Promise<SealedSecret[]> {
  return rows(
    db,
    `SELECT id AS "webhookId", secret FROM webhook
      WHERE secret IS NOT NULL AND ${KEY_ID} IS DISTINCT FROM $1 AND id > $2 ORDER BY id LIMIT $3`,
    [keyId, after, limit],
  )
}

/** Puts `sealed` in the place of `before`. False when that is no longer there: the webhook is gone or was changed. */
export async function replaceSealedSecret(
  db: Db,
  webhookId: string,
  before: string,
  sealed: string,
): Promise<boolean> {
  const replaced = await firstRow(
    db,
    `UPDATE webhook SET secret = $3 WHERE id = $1 AND secret = $2 RETURNING id`,
    [webhookId, before, sealed],
  )
  return replaced !== null
}

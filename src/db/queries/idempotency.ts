import type { DataSource, EntityManager } from 'typeorm'
import { ProblemError } from '../../errors.ts'
import { firstRow, rows, type Db } from '../db.ts'

/** One request that must take effect once: whose it is, what it does, its key, and a digest of its body. */
export type IdempotentRequest = {
  organisationId: string
  memberId: string
  operation: string
  key: string
  digest: Buffer
}

/** How long an answer is kept for repeats. */
const KEPT_FOR = '24 hours'

/**
 * Runs `work` in one transaction, once per request: a repeat gets the stored answer, and of many at the
 * same time one works while the others wait for its commit. The answer is stored as JSON and must hold no secret.
 * `request` null means that no key was sent: `work` then runs on the pool, and is to be a single statement.
 * Throws 422 `idempotency_key_reused` when the key came with another body before.
 */
export async function runOnce<Answer>(
  dataSource: DataSource,
  request: IdempotentRequest | null,
  work: (db: Db) => Promise<Answer>,
): Promise<{ answer: Answer; replayed: boolean }> {
  if (request === null) return { answer: await work(dataSource), replayed: false }
  return dataSource.transaction(async (manager) => {
    if (!(await claimKey(manager, request)))
      return { answer: await storedAnswer<Answer>(manager, request), replayed: true }
    const answer = await work(manager)
    await rows(
      manager,
      `UPDATE idempotency_key SET response = $5
        WHERE organisation_id = $1 AND member_id = $2 AND operation = $3 AND key = $4`,
      [...identity(request), JSON.stringify(answer)],
    )
    return { answer, replayed: false }
  })
}

/** The same for work of several statements: in a transaction, also where no key was sent. */
export async function transactOnce<Answer>(
  dataSource: DataSource,
  request: IdempotentRequest | null,
  work: (db: Db) => Promise<Answer>,
): Promise<{ answer: Answer; replayed: boolean }> {
  if (request !== null) return runOnce(dataSource, request, work)
  return { answer: await dataSource.transaction(work), replayed: false }
}

/** True when this transaction is the first with the key (or the earlier answer is too old to count). */
async function claimKey(manager: EntityManager, request: IdempotentRequest): Promise<boolean> {
  const claimed = await firstRow(
    manager,
    `INSERT INTO idempotency_key AS k (organisation_id, member_id, operation, key, digest)
     VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (organisation_id, member_id, operation, key) DO UPDATE
       SET digest = EXCLUDED.digest, response = NULL, created_at = now()
       WHERE k.created_at < now() - interval '${KEPT_FOR}'
     RETURNING key`,
    [...identity(request), request.digest],
  )
  return claimed !== null
}

async function storedAnswer<Answer>(manager: EntityManager, request: IdempotentRequest): Promise<Answer> {
  const stored = await firstRow<{ digest: Buffer; response: Answer }>(
    manager,
    `SELECT digest, response FROM idempotency_key
      WHERE organisation_id = $1 AND member_id = $2 AND operation = $3 AND key = $4`,
    identity(request),
  )
  if (stored?.digest.equals(request.digest) === true) return stored.response
  throw new ProblemError('idempotency_key_reused', {
    detail: 'This Idempotency-Key was sent before with another body.',
  })
}

function identity(request: IdempotentRequest): string[] {
  return [request.organisationId, request.memberId, request.operation, request.key]
}

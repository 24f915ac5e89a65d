// Hand-written: it is on the path of publishing, where building three statements would double the processor's time.
import type { DataSource, EntityManager } from 'typeorm'
import { ProblemError } from '../../problem-error.ts'
import { sql, type Db } from '../connection/db.ts'
import type { IdempotencyKey } from '../entities/event.ts'

/** One request that must take effect once: whose it is, what it does, its key, and a digest of its body. */
export type IdempotentRequest = Omit<IdempotencyKey, 'response' | 'createdAt'>

/** How long an answer is stored for repeats. */
const ANSWER_TTL = '24 hours'

/**
 * Runs `work` in one transaction, once per request that has a key: a repeat gets the stored answer, and of many at the
 * same time one works while the others wait for its commit. The answer is stored as JSON and must contain no secret.
 * Throws 422 `idempotency_key_reused` when the key came with another body before.
 */
export function transactOnce<Answer>(
  dataSource: DataSource,
  request: IdempotentRequest | null,
  work: (db: Db) => Promise<Answer>,
): Promise<{ answer: Answer; replayed: boolean }> {
  return dataSource.transaction(async (manager) => {
    if (request !== null && !(await claimKey(manager, request)))
      return { answer: await storedAnswer<Answer>(manager, request), replayed: true }
    const answer = await work(manager)
    if (request !== null) await storeAnswer(manager, request, answer)
    return { answer, replayed: false }
  })
}

/** True when this transaction is the first with the key (or the earlier answer is too old to count). */
async function claimKey(manager: EntityManager, request: IdempotentRequest): Promise<boolean> {
  const claimed = await sql(
    `INSERT INTO idempotency_key (organisation_id, member_id, operation, key, digest)
     VALUES (:organisationId, :memberId, :operation, :key, :digest)
     ON CONFLICT (organisation_id, member_id, operation, key) DO UPDATE
       SET digest = EXCLUDED.digest, response = NULL, created_at = now()
       WHERE idempotency_key.created_at < now() - interval '${ANSWER_TTL}'
     RETURNING key`,
    { ...identity(request), digest: request.digest },
  ).first(manager)
  return claimed !== null
}

async function storeAnswer(
  manager: EntityManager,
  request: IdempotentRequest,
  answer: unknown,
): Promise<void> {
  await sql(`UPDATE idempotency_key SET response = :response WHERE ${IDENTITY}`, {
    ...identity(request),
    response: JSON.stringify(answer),
  }).rows(manager)
}

async function storedAnswer<Answer>(manager: EntityManager, request: IdempotentRequest): Promise<Answer> {
  const stored = await sql(
    `SELECT digest, response FROM idempotency_key WHERE ${IDENTITY}`,
    identity(request),
  ).first<{ digest: Buffer; response: Answer }>(manager)
  if (stored?.digest.equals(request.digest) === true) return stored.response
  throw new ProblemError('idempotency_key_reused', {
    detail: 'This Idempotency-Key was sent before with another body.',
  })
}

const IDENTITY = `organisation_id = :organisationId AND member_id = :memberId AND operation = :operation AND key = :key`

function identity({ organisationId, memberId, operation, key }: IdempotentRequest) {
  return { organisationId, memberId, operation, key }
}

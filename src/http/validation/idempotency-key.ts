import { createHash } from 'node:crypto'
import type { Caller } from '../../domain/actor.ts'
import type { IdempotentRequest } from '../../db/queries/idempotency.ts'
import { badRequest } from '../../errors.ts'

/** A token, or the same in quotes (a structured-field string, as the IETF draft writes it). */
const GRAMMAR = /^(?:"([A-Za-z0-9._:-]{1,255})"|([A-Za-z0-9._:-]{1,255}))$/

/** The grammar, as the OpenAPI document states it. */
export const IDEMPOTENCY_KEY_PATTERN = GRAMMAR.source

/** Parses the `Idempotency-Key` header; null when there is none. Throws 400 when it is malformed, empty or sent twice. */
export function parseIdempotencyKey(
  header: string | string[] | undefined,
  caller: Caller,
  operation: string,
  bodyText: string,
): IdempotentRequest | null {
  if (header === undefined) return null
  const match = GRAMMAR.exec(String(header))
  const key = match?.[1] ?? match?.[2]
  if (key === undefined) {
    throw badRequest(
      'invalid_idempotency_key',
      'Idempotency-Key takes 1 to 255 of A-Z a-z 0-9 . _ : - and is sent once.',
    )
  }
  const { organisationId, memberId } = caller
  return { organisationId, memberId, operation, key, digest: createHash('sha256').update(bodyText).digest() }
}

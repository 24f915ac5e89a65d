import { createHash } from 'node:crypto'
import type { Caller } from '../../domain/actor.ts'
import type { IdempotentRequest } from '../../db/queries/idempotency.ts'
import { badRequest } from '../../problem-error.ts'
import type { TraceContext } from '../../observability/tracing.ts'

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

/**
 * W3C Trace Context, 3.2: version, trace id, parent id and flags in lower-case hexadecimal digits. The version `ff` and
 * ids of zeros only are invalid. A later version may have further fields after another hyphen; a comma would mean that
 * the header was sent more than once.
 */
const TRACEPARENT =
  /^(?!ff)(?<version>[0-9a-f]{2})-(?!0{32})(?<traceId>[0-9a-f]{32})-(?!0{16})(?<spanId>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<rest>-[^,]*)?$/

/** The only flag that is read: the caller records its trace. */
const SAMPLED_FLAG = 0x01

/** Parses the `traceparent` header; null when it is malformed, or sent more than once. */
export function parseTraceparent(header: string): TraceContext | null {
  const { version, traceId, spanId, flags = '', rest } = TRACEPARENT.exec(header)?.groups ?? {}
  if (traceId === undefined || spanId === undefined) return null
  if (version === '00' && rest !== undefined) return null
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED_FLAG) !== 0 }
}

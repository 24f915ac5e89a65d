import { MAX_EVENT_BYTES, singleLine } from '../domain/text-rules.ts'
import { problemIn, readJson, retryAfterMs } from '../outbound/api-answer.ts'
import type { OutboxRow } from './outbox.ts'

/**
 * `refused`: this row, and it would be again. `failed`: it may be published later, as it is; `isApiDown` where that is
 * the state of the API, or of the key.
 */
type Outcome =
  | { kind: 'published'; eventId: string }
  | { kind: 'refused'; error: string }
  | { kind: 'failed'; error: string; retryAfterMs: number | null; isApiDown: boolean }

/** Publishes one row. Never rejects: an aborted `signal` is a failure too. */
export type PublishRow = (organisationId: string, row: OutboxRow, signal: AbortSignal) => Promise<Outcome>

/** The API answers within ten seconds. */
const PUBLISH_TIMEOUT_MS = 15_000

const MAX_ERROR_LENGTH = 500

/** What is wrong with the row, where Posthorn itself answers with one of these. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 415, 422])

/** These are about one organisation, or about the moment. */
const PASSING: ReadonlySet<number> = new Set([404, 409, 429, 503])

/** Builds the call of the API. `apiUrl` has no slash at its end. */
export function createPublishRow(api: {
  apiUrl: string
  operatorKey: string
  timeoutMs?: number
}): PublishRow {
  const { apiUrl, operatorKey, timeoutMs = PUBLISH_TIMEOUT_MS } = api
  return async (organisationId, row, signal) => {
    const body = bodyOf(row)
    if (typeof body !== 'string') return body
    try {
      const response = await fetch(`${apiUrl}/api/orgs/${organisationId}/events`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-operator-key': operatorKey,
          'idempotency-key': idempotencyKey(row),
        },
        body,
        // A redirect could lead the key to another host.
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      })
      return outcomeOf(response, await readJson(response))
    } catch (thrown) {
      const cause = thrown instanceof Error ? (thrown.cause ?? thrown) : thrown
      const error = singleLine(`${apiUrl} cannot be reached: ${messageOf(cause)}`, MAX_ERROR_LENGTH)
      return { kind: 'failed', error, retryAfterMs: null, isApiDown: true }
    }
  }
}

/**
 * The id of the row, with the instant at which it was made: the ids of a table that is made anew begin with 1 again, and
 * a key that was used within 24 hours would hide another event.
 */
function idempotencyKey({ id, createdUs }: OutboxRow): string {
  return `outbox-${id}-${createdUs}`
}

/**
 * The body of a row is the same at each try and of each release: by its digest the API recognises a repeat. `data` is
 * checked, since text that is more than one JSON value could set other members.
 */
function bodyOf(row: OutboxRow): string | Outcome {
  const { event, data, traceId, spanId, triggeredBy, createdUs } = row
  if (data === null) return refused(`body_too_large: data has more than ${MAX_EVENT_BYTES} bytes`)
  try {
    JSON.parse(data)
  } catch {
    return refused('malformed_json: data is not JSON')
  }
  const members = [
    `"event":${JSON.stringify(event)}`,
    `"data":${data}`,
    `"timestamp":${Math.floor(Number(createdUs) / 1_000)}`,
    ...(traceId === null ? [] : [`"traceId":${JSON.stringify(traceId)}`]),
    ...(spanId === null ? [] : [`"spanId":${JSON.stringify(spanId)}`]),
    ...(triggeredBy === null ? [] : [`"triggeredBy":${triggeredBy}`]),
  ]
  return `{${members.join(',')}}`
}

function outcomeOf({ status, headers }: Response, answer: unknown): Outcome {
  const { id } = (answer ?? {}) as { id?: unknown }
  if (status === 202 && typeof id === 'string') return { kind: 'published', eventId: id }
  const problem = problemIn(answer)
  if (problem === null) {
    const error = `${status}, but not as Posthorn answers: is --api its address?`
    return { kind: 'failed', error, retryAfterMs: retryAfterMs(headers.get('retry-after')), isApiDown: true }
  }
  const { code, detail, errors = [{ pointer: '', detail: detail ?? '' }] } = problem
  const reasons = errors.map((each) => `${each.pointer ?? ''} ${each.detail ?? ''}`.trim())
  const error = `${status} ${code}: ${reasons.join('; ')}`
  if (REFUSALS.has(status)) return refused(error)
  return {
    kind: 'failed',
    error: singleLine(error, MAX_ERROR_LENGTH),
    retryAfterMs: retryAfterMs(headers.get('retry-after')),
    isApiDown: !PASSING.has(status),
  }
}

function refused(error: string): Outcome {
  return { kind: 'refused', error: singleLine(error, MAX_ERROR_LENGTH) }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

import { traceAttempt } from '../../observability/tracing.ts'
import type { AttemptRequest } from '../../domain/attempt-outcome.ts'
import type { HttpClient, PostResult } from '../../outbound/http-client.ts'
import { signedHeaders } from '../../outbound/signed-headers.ts'
import type { SecretBox } from '../../secret-box.ts'
import type { Claim } from '../protocol/claim.ts'

/** The result of a POST, and when it ended, on `performance.now()`. */
export type Sent = { result: PostResult; endedAtMs: number }

/** Returns the headers of every attempt of a delivery. */
export function deliveryHeaders(
  secretBox: SecretBox,
  deliveryId: string,
  claim: Claim,
): Record<string, string> {
  if (claim.secret === null) throw new Error(`webhook ${claim.webhookId} is live but has no secret`)
  return signedHeaders(deliveryId, secretBox.open(claim.webhookId, claim.secret), claim.body)
}

export async function post(
  httpClient: HttpClient,
  request: Pick<AttemptRequest, 'organisationId' | 'deliveryId' | 'number'>,
  claim: Claim,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Sent> {
  const { url, body, webhookId: reuseKey } = claim
  const result = await traceAttempt(request, claim, (onPhase) =>
    httpClient.post({ url, headers, body, signal, reuseKey, onPhase }),
  )
  return { result, endedAtMs: performance.now() }
}

/** Returns the failure, at `now`, of an attempt that lost its worker `times` times; nothing more is sent for it. */
export function lostWorker(times: number, now: Date): Sent {
  const error = `The attempt was begun ${times} times, but each time the worker was lost before the outcome was recorded.`
  return {
    result: {
      succeeded: false,
      failureCode: 'worker_lost',
      statusCode: null,
      error,
      startedAt: now,
      durationMs: 0,
      response: null,
      isInconclusive: false,
    },
    endedAtMs: performance.now(),
  }
}

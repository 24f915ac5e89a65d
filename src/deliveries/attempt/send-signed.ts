import type { Claim } from '../../db/queries/attempts.ts'
import type { HttpClient, PostResult } from '../../outbound/http-client.ts'
import { sign } from '../../outbound/signature.ts'
import type { SecretBox } from '../../secret-box.ts'

/** The POST as it went, and when it ended, on `performance.now()`. */
export type Sent = { result: PostResult; endedAtMs: number }

/** The headers of spec 4.4 and 5.2 for the stored bytes: the same id and signature on every attempt. */
export function deliveryHeaders(
  secretBox: SecretBox,
  deliveryId: string,
  claim: Claim,
): Record<string, string> {
  if (claim.secret === null) throw new Error(`webhook ${claim.webhookId} is live but has no secret`)
  return {
    'Content-Type': 'application/json',
    'X-Webhook-Event-ID': deliveryId,
    'X-Webhook-Signature': sign(secretBox.open(claim.webhookId, claim.secret), claim.body),
  }
}

export async function post(
  httpClient: HttpClient,
  claim: Claim,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Sent> {
  const { url, body, webhookId: reuseKey } = claim
  const result = await httpClient.post({ url, headers, body, signal, reuseKey })
  return { result, endedAtMs: performance.now() }
}

/** The outcome, at `now`, of an attempt that was begun again and again without an end; nothing more is sent for it. */
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

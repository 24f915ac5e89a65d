import type { Claim } from '../db/queries/attempts.ts'
import type { PostResult } from '../outbound/http-client.ts'
import { sign } from '../outbound/signature.ts'
import type { AttemptDependencies, AttemptRequest } from './attempt.ts'

/** The POST as it went, and when it ended in Unix ms of our clock. */
export type Sent = { result: PostResult; endedAtMs: number }

/** Signs the stored bytes and sends them (spec 4.4 and 5.2): the same bytes, id and signature on every attempt. */
export async function sendSigned(
  dependencies: Pick<AttemptDependencies, 'httpClient' | 'secretBox'>,
  request: AttemptRequest,
  claim: Claim,
): Promise<Sent> {
  if (claim.secret === null) throw new Error(`webhook ${claim.webhookId} is live but has no secret`)
  const secret = dependencies.secretBox.open(claim.webhookId, claim.secret)
  const result = await dependencies.httpClient.post({
    url: claim.url,
    headers: {
      'Content-Type': 'application/json',
      'X-Webhook-Event-ID': request.deliveryId,
      'X-Webhook-Signature': sign(secret, claim.body),
    },
    body: claim.body,
  })
  return { result, endedAtMs: Date.now() }
}

/** The outcome of an attempt that was begun again and again without an end; nothing more is sent for it. */
export function lostWorker(times: number): Sent {
  const startedAt = new Date()
  const error = `The attempt was begun ${times} times, but each time the worker was lost before the outcome was recorded.`
  return {
    result: {
      succeeded: false,
      failureCode: 'worker_lost',
      statusCode: null,
      error,
      startedAt,
      durationMs: 0,
      response: null,
    },
    endedAtMs: startedAt.getTime(),
  }
}

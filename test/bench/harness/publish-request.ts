import { wordsOf } from '../words.ts'
import type { PublishJob } from './generator.ts'

/** Size of the body of a request to publish; the envelope that is sent to webhooks is a little larger. */
const BODY_BYTES = 1_024

/** A whole request to publish one event. All of a job are alike, so that sending one is a single write. */
export function publishRequest(
  job: Omit<PublishJob, 'apiUrls' | 'pace' | 'limit'> & { apiUrl: string },
): Buffer {
  const bare = JSON.stringify({ event: job.eventKey, data: { id: 'cus_1', note: '' } })
  const body = bare.replace('""', `"${wordsOf((job.bodyBytes ?? BODY_BYTES) - bare.length)}"`)
  const head = [
    `POST /api/orgs/${job.organisationId}/events HTTP/1.1`,
    `Host: ${new URL(job.apiUrl).host}`,
    `X-Api-Key: ${job.apiKey}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

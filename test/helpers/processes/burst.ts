import { expect } from 'chai'
import { eventually } from '../eventually.ts'
import type { PosthornProcess } from './posthorn.ts'
import type { Stage } from './stage.ts'

/** Publishes in progress at once. */
const CONCURRENCY = 16

/** Publishes events to the stage's webhook as fast as they are accepted; returns the ids of their deliveries. */
export async function publishBurst(
  stage: Stage,
  posthorn: PosthornProcess,
  count: number,
): Promise<string[]> {
  const deliveries: string[] = []
  let left = count
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      while (left-- > 0) deliveries.push(await stage.publish(posthorn))
    }),
  )
  return deliveries
}

/** Has the stage's endpoint answer so many deliveries that it takes as many POSTs at once as any may. */
export async function proveEndpoint(stage: Stage, posthorn: PosthornProcess): Promise<void> {
  stage.answerWith(() => 200)
  for (const deliveryId of await publishBurst(stage, posthorn, 80))
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
}

/** How many POSTs of the stage's receiver each delivery got; those that got none are missing. */
export function postsByDelivery({ receiver }: Stage): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { headers } of receiver.posts) {
    const deliveryId = String(headers['x-webhook-event-id'])
    counts.set(deliveryId, (counts.get(deliveryId) ?? 0) + 1)
  }
  return counts
}

type Job = { id: string; state: string; total: number; done: number }

/** Requests a retry job, polls it to its end, and returns what was seen of it. `progress` are the values of `done`. */
export async function runRetryJob(
  stage: Stage,
  posthorn: PosthornProcess,
  body: { mode: 'failed' | 'force' },
  timeoutMs = 120_000,
): Promise<{ total: number; progress: number[]; firstPostAfterMs: number; tookMs: number }> {
  const { organisationId, apiKey } = stage.member
  const askedAt = Date.now()
  const before = stage.receiver.posts.length
  const asked = await posthorn.call('POST', `/api/orgs/${organisationId}/webhooks/retry-deliveries`, {
    apiKey,
    body,
  })
  expect(asked.status, asked.text).to.equal(202)
  const location = asked.headers.get('location')!
  const progress: number[] = []
  const job = await eventually(async () => {
    const { json } = await posthorn.call('GET', location, { apiKey })
    const seen = json as Job
    progress.push(seen.done)
    expect(seen.state).to.equal('done')
    return seen
  }, timeoutMs)
  expect(job.done).to.equal(job.total)
  const first = stage.receiver.posts[before]
  return {
    total: job.total,
    progress,
    firstPostAfterMs: first === undefined ? Number.NaN : first.arrivedAt - askedAt,
    tookMs: Date.now() - askedAt,
  }
}

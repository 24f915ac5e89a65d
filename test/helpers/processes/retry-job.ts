import { expect } from 'chai'
import { eventually } from '../eventually.ts'
import type { PosthornProcess } from './posthorn.ts'
import type { Stage } from './stage.ts'

type Job = { id: string; state: string; total: number; done: number }

/** Requests a retry job, polls it to its end, and returns what was seen of it. `progress` are the values of `done`. */
export async function runRetryJob(
  stage: Stage,
  posthorn: PosthornProcess,
  body: { mode: 'failed' | 'force'; id?: string },
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

import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import pg from 'pg'
import { percentile } from '../helpers/percentile.ts'
import { createNeighbour } from '../helpers/processes/burst.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'

const DISCARDS = 25
const HELD_MS = 20_000
const POOL_SIZE = 10

describe('a webhook whose lock is held', () => {
  const stage = useStage()
  const call = async (
    posthorn: PosthornProcess,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; ms: number; retryAfter: string | null }> => {
    const startedAt = performance.now()
    const { organisationId, apiKey } = stage.member
    const answer = await posthorn.call(
      method,
      `/api/orgs/${organisationId}/webhooks/${stage.webhookId}${path}`,
      body === undefined ? { apiKey } : { apiKey, body },
    )
    const retryAfter = answer.headers.get('retry-after')
    return { status: answer.status, ms: performance.now() - startedAt, retryAfter }
  }

  it('delays no other publisher, and answers those who wait for it in time', async () => {
    const posthorn = await stage.start({ env: { DATABASE_POOL_SIZE: String(POOL_SIZE) } })
    const neighbour = await createNeighbour(stage, posthorn)
    stage.answerWith(() => 500)
    const ids = await Promise.all(Array.from({ length: DISCARDS }, () => stage.publish(posthorn)))
    await Promise.all(ids.map((id) => stage.reaches(id, { state: 'waiting', attempts: 1 })))

    // Without the limits of our own connections.
    const holder = new pg.Client({ connectionString: stage.databaseUrl })
    await holder.connect()
    await holder.query('BEGIN')
    await holder.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [stage.webhookId])
    await holder.query('SELECT 1 FROM webhook WHERE id = $1 FOR NO KEY UPDATE', [stage.webhookId])
    const heldAtMs = performance.now()
    const isHeld = (): boolean => performance.now() - heldAtMs < HELD_MS

    // Each is requested repeatedly, as a caller does that is asked to retry.
    const waiting = [
      ...ids.map((id) => () => call(posthorn, 'POST', `/deliveries/${id}/discard`)),
      () => call(posthorn, 'PATCH', '', { enabled: true }),
      () => call(posthorn, 'POST', `/discard-failed`),
      () => call(posthorn, 'POST', `/deliveries/${ids[0]}/retry`),
    ].map(async (ask) => {
      const answers = []
      while (isHeld()) answers.push(await ask())
      return answers
    })
    const publishing: number[] = []
    while (isHeld()) {
      const startedAt = performance.now()
      await neighbour.publishAtOnce(3)
      publishing.push(performance.now() - startedAt)
      await delay(200)
    }
    await holder.end()

    // If each waited for a connection, for five seconds, there would be time for four.
    expect(publishing).to.have.length.above(12)
    expect(percentile(publishing, 0.5)).to.be.below(2_000)
    expect(Math.max(...publishing)).to.be.below(10_000)
    for (const { status, ms, retryAfter } of (await Promise.all(waiting)).flat()) {
      expect(ms).to.be.below(10_000)
      if (status === 503) expect(retryAfter).to.match(/^[1-9]\d*$/)
      else expect(status).to.be.below(500)
    }
    await neighbour.close()
    const afterwards = await call(posthorn, 'POST', `/deliveries/${ids[1]}/discard`)
    expect(afterwards.status).to.be.oneOf([200, 409])
  })
})

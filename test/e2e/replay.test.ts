import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { publishRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/stage.ts'

/** A fresh event beside a replay begins within this time of its publication, on a busy machine too. */
const FRESH_WITHIN_MS = 2_000

describe('a replay, on a real Temporal server', function () {
  this.timeout(120_000)
  const stage = useStage()

  it('sends every past event once, and fresh events are not late beside it', async () => {
    const { dataSource, member, webhookId, receiver } = stage
    const past = 200
    await dataSource.query('UPDATE webhook SET enabled = false WHERE id = $1', [webhookId])
    for (let index = 0; index < past; index++) await publishRow(dataSource, member.organisationId)
    await dataSource.query('UPDATE webhook SET enabled = true WHERE id = $1', [webhookId])
    stage.answerWith(() => delay(200, 200))
    const posthorn = await stage.start()
    const replays = `/api/orgs/${member.organisationId}/webhooks/${webhookId}/replays`
    const call = (method: string, path: string, body?: object) =>
      posthorn.call(method, path, { apiKey: member.apiKey, ...(body === undefined ? {} : { body }) })
    const made = await call('POST', replays, { since: '2026-01-01T00:00:00.000Z' })
    expect(made.json, made.text).to.include({ total: past, state: 'running' })
    const { id } = made.json as { id: string }
    const read = async () => (await call('GET', `${replays}/${id}`)).json as { done: number; state: string }

    const lateness: number[] = []
    while ((await read()).state === 'running') {
      const publishedAt = Date.now()
      const deliveryId = await stage.publish(posthorn)
      await eventually(() => Promise.resolve(expect(receiver.postsOf(deliveryId)).to.have.length(1)), 20_000)
      lateness.push(receiver.postsOf(deliveryId)[0]!.arrivedAt - publishedAt)
    }
    expect(await read()).to.include({ done: past, succeeded: past, failed: 0 })
    expect(receiver.posts).to.have.length(past + lateness.length)
    expect(new Set(receiver.posts.map(({ headers }) => headers['x-webhook-event-id'])).size).to.equal(
      past + lateness.length,
    )
    expect(lateness.length).to.be.above(5)
    expect(Math.max(...lateness), lateness.join(' ')).to.be.below(FRESH_WITHIN_MS)
  })
})

import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { publishRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { percentile } from '../helpers/percentile.ts'

const PAST = 200

describe('a replay, on a real Temporal server', () => {
  const stage = useStage()

  it('sends every past event once, and fresh events are not late beside it', async () => {
    const { dataSource, member, webhookId, receiver } = stage
    await dataSource.query('UPDATE webhook SET enabled = false WHERE id = $1', [webhookId])
    for (let index = 0; index < PAST; index++) await publishRow(dataSource, member.organisationId)
    await dataSource.query('UPDATE webhook SET enabled = true WHERE id = $1', [webhookId])
    stage.answerWith(() => delay(200, 200))
    const posthorn = await stage.start()
    const replays = `/api/orgs/${member.organisationId}/webhooks/${webhookId}/replays`
    const call = (method: string, path: string, body?: object) =>
      posthorn.call(method, path, { apiKey: member.apiKey, ...(body === undefined ? {} : { body }) })
    const made = await call('POST', replays, { since: '2026-01-01T00:00:00.000Z' })
    expect(made.json, made.text).to.include({ total: PAST, state: 'running' })
    const { id } = made.json as { id: string }
    const read = async () => (await call('GET', `${replays}/${id}`)).json as { done: number; state: string }

    /** How many past events were posted between the publication of each fresh one and its own POST. */
    const overtaken: number[] = []
    while ((await read()).state === 'running') {
      const before = receiver.posts.length
      const deliveryId = await stage.publish(posthorn)
      await eventually(() => Promise.resolve(expect(receiver.postsOf(deliveryId)).to.have.length(1)))
      overtaken.push(receiver.posts.indexOf(receiver.postsOf(deliveryId)[0]!) - before)
    }
    expect(await read()).to.include({ done: PAST, succeeded: PAST, failed: 0 })
    expect(receiver.posts).to.have.length(PAST + overtaken.length)
    expect(new Set(receiver.posts.map(({ headers }) => headers['x-webhook-event-id'])).size).to.equal(
      PAST + overtaken.length,
    )
    expect(overtaken.length).to.be.above(5)
    expect(percentile(overtaken, 0.8), overtaken.join(' ')).to.be.below(PAST / 2)
  })
})

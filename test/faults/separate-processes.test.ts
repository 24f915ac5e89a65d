import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { createWebhookOwner } from '../helpers/processes/webhook-owner.ts'

const HANGING = 60
const EVENTS = 8
const INTERVAL_MS = 2_000
const VICTIM_INTERVAL_MS = 400

/** The longest that a healthy webhook of another organisation waits for its first attempt. */
const AT_MOST_MS = 2_000

describe('an API and a worker as separate processes, with 60 endpoints that hang', () => {
  const stage = useStage()

  it('deliver to a healthy endpoint within two seconds', async () => {
    const { organisationId, apiKey } = stage.member
    for (let count = 1; count < HANGING; count++)
      await createWebhookRow(stage.dataSource, { organisationId, url: stage.receiver.url })
    stage.answerWith(() => null)
    const [api] = await Promise.all([stage.start({ command: 'api' }), stage.start({ command: 'worker' })])
    const victim = await createWebhookOwner(stage.dataSource, api)
    // An endpoint that never answered has one slot, beside others of its kind.
    const first = await victim.publish()
    await eventually(async () => expect((await victim.delivery(first)).state).to.equal('completed'))
    const publishedAt = new Map<string, number>()
    const flood = (async () => {
      for (let event = 0; event < EVENTS; event++) {
        const body = { event: 'customer:created', data: { id: 'cus_1' } }
        const { status, text } = await api.call('POST', `/api/orgs/${organisationId}/events`, {
          apiKey,
          body,
        })
        expect(status, text).to.equal(202)
        await delay(INTERVAL_MS)
      }
    })()
    for (let event = 0; event < (EVENTS * INTERVAL_MS * 2) / VICTIM_INTERVAL_MS; event++) {
      const atMs = Date.now()
      publishedAt.set(await victim.publish(), atMs)
      await delay(VICTIM_INTERVAL_MS)
    }
    await flood
    const posts = () =>
      new Map(victim.receiver.posts.map((post) => [post.headers['x-webhook-event-id'], post.arrivedAt]))
    await eventually(() => expect([...posts().keys()]).to.include.members([...publishedAt.keys()]))
    const found = posts()
    const late = [...publishedAt].map(([deliveryId, atMs]) => found.get(deliveryId)! - atMs)
    expect(Math.max(...late)).to.be.at.most(AT_MOST_MS)
    await victim.close()
  })
})

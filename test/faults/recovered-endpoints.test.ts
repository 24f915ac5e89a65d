import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'

/** Together fewer than the 200 deliveries of each process for which the time is promised. */
const WEBHOOKS = 60
const EVENTS = 3

/** POSTs hang for 15 s: the first event finds unknown endpoints, the others such as hang. */
const INTERVAL_MS = 7_000

const BEGUN_WITHIN_MS = 60_000

describe('endpoints that hang, and recover together', () => {
  const stage = useStage()

  /** Publishes one event to all webhooks, and returns the ids of its deliveries. */
  async function publish(posthorn: PosthornProcess): Promise<string[]> {
    const { organisationId, apiKey } = stage.member
    const body = { event: 'customer:created', data: { id: 'cus_1' } }
    const answered = await posthorn.call('POST', `/api/orgs/${organisationId}/events`, { apiKey, body })
    expect(answered.status, answered.text).to.equal(202)
    return (answered.json as { deliveries: { id: string }[] }).deliveries.map(({ id }) => id)
  }

  it('have every first attempt begun within 60 s, with two processes and no further traffic', async () => {
    const { organisationId } = stage.member
    for (let count = 1; count < WEBHOOKS; count++)
      await createWebhookRow(stage.dataSource, { organisationId, url: stage.receiver.url })
    const processes = await Promise.all([stage.start(), stage.start()])
    stage.answerWith(() => null)
    const published: string[] = []
    for (let event = 0; event < EVENTS; event++) {
      const pause = delay(INTERVAL_MS)
      published.push(...(await publish(processes[event % processes.length]!)))
      await pause
    }
    expect(published).to.have.length(EVENTS * WEBHOOKS)
    stage.answerWith(() => 200)
    await eventually(() => {
      const posted = new Set(stage.receiver.posts.map(({ headers }) => headers['x-webhook-event-id']))
      expect(published.filter((deliveryId) => !posted.has(deliveryId))).to.deep.equal([])
    }, BEGUN_WITHIN_MS)
  })
})

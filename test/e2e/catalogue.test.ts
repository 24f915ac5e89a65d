import { expect } from 'chai'
import { useSeedFiles } from '../helpers/cli/seed-files.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'

const BEFORE = { eventKeys: [{ key: 'order:shipped', meaning: 'Order shipped' }] }
const AFTER = { eventKeys: [{ key: 'order:packed', meaning: 'Order packed' }] }

describe('processes with a catalogue of the operator', () => {
  const files = useSeedFiles()
  let stage: Stage

  before(async () => {
    stage = await createStage()
  })
  after(() => stage.close())

  it('deliver its events, and go on with what waits when the key is gone from it', async () => {
    const taskQueue = 'catalogue'
    const { organisationId } = stage.member
    const { id: webhookId } = await createWebhookRow(stage.dataSource, {
      organisationId,
      url: stage.receiver.url,
      subscribedEventKeys: ['order:shipped'],
    })
    const wanted = { event: 'order:shipped', webhookId }
    const first = await stage.start({ taskQueue, env: { POSTHORN_CATALOGUE: files.write(BEFORE) } })
    expect(first.log()).to.not.include('catalogue.keys_missing')
    await stage.reaches(await stage.publish(first, wanted), { state: 'completed', attempts: 1 })

    stage.answerWith(() => 503)
    const waiting = await stage.publish(first, wanted)
    await becomes(waiting, 'waiting')
    await first.stop()
    stage.answerWith(() => 200)

    const second = await stage.start({ taskQueue, env: { POSTHORN_CATALOGUE: files.write(AFTER) } })
    expect(second.log())
      .to.include('"event":"catalogue.keys_missing"')
      .and.include('{"eventKey":"order:shipped","webhooks":1}')
    await becomes(waiting, 'completed')
  })

  async function becomes(deliveryId: string, state: string): Promise<void> {
    await eventually(async () => {
      const rows: unknown = await stage.dataSource.query('SELECT state FROM delivery WHERE id = $1', [
        deliveryId,
      ])
      expect(rows).to.deep.equal([{ state }])
    })
  }
})

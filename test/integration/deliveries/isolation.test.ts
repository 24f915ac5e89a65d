import { expect } from 'chai'
import { createEndpoints } from '../../../src/deliveries/attempt/endpoint-concurrency.ts'
import { eventually } from '../../helpers/eventually.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'

const BACKLOG = 1_000

describe('a backlog of 1,000 for a slow endpoint', () => {
  const suite = useInlineAttempts()

  async function backlog(mode: 'workflow' | 'overflow' | 'direct') {
    const [slow, fast] = [await suite.endpoint(), await suite.endpoint()]
    const endpoints = createEndpoints({ maxLimit: 10, initialLimit: 10 })
    endpoints.noteFault(slow.webhookId)
    const made = suite.process({ mode, attempts: { endpoints } })
    await slow.commit(BACKLOG)
    await made.dispatcher.pull()
    const starts = () => suite.temporal.starts.filter(({ webhookId }) => webhookId === slow.webhookId)
    await eventually(() => expect(starts()).to.have.length(10))
    return { ...made, slow, fast, starts }
  }

  for (const mode of ['workflow', 'overflow', 'direct'] as const) {
    it(`waits on its rows in \`${mode}\`, but for what has a slot`, async () => {
      const { dispatcher, starts } = await backlog(mode)
      for (let pass = 0; pass < 3; pass++) await dispatcher.pull()
      expect(starts().every(({ queue }) => queue === 'slow')).to.equal(true)
      expect(starts()).to.have.length(10)
      expect(dispatcher.load()).to.include({ queued: 0, startsInFlight: 0 })
      const waiting = `state = 'pending' AND workflow_started_at IS NULL AND sweep_at <= now()`
      expect(await suite.count(waiting)).to.equal(BACKLOG - 10)
    })

    it(`delays no delivery of other webhooks in \`${mode}\`, fresh or taken up`, async () => {
      const { publish, dispatcher, endAttempts, fast } = await backlog(mode)
      const deliveries = [...(await publish(fast)), ...(await fast.commit(1))]
      await dispatcher.pull()
      for (const { deliveryId } of deliveries)
        await eventually(async () => {
          await dispatcher.pull()
          const isBegun = [...fast.receiver.postsOf(deliveryId), ...suite.temporal.startsOf(deliveryId)]
          expect(isBegun).to.have.length(1)
          endAttempts([{ deliveryId, webhookId: fast.webhookId }])
        }, 10_000)
    })
  }

  it('goes on as attempts end, here or elsewhere', async () => {
    const { dispatcher, endAttempts, starts } = await backlog('overflow')
    dispatcher.begin()
    endAttempts(starts().slice(0, 4))
    await eventually(() => expect(starts()).to.have.length(14))
    const elsewhere = starts().slice(4, 8)
    await suite.database.dataSource.query(
      `UPDATE delivery SET state = 'waiting', attempts = 1, next_attempt_at = now() + interval '1 hour' WHERE id = ANY($1::uuid[])`,
      [elsewhere.map(({ deliveryId }) => deliveryId)],
    )
    await eventually(() => expect(starts()).to.have.length(18))
  })
})

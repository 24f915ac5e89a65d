import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { freePort } from '../../src/free-port.ts'
import { openTransaction, untilWaitingForLock } from '../helpers/database/database.ts'
import { postsByDelivery, proveEndpoint, publishBurst } from '../helpers/processes/burst.ts'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { useTemporalClient } from '../helpers/runner/servers.ts'

/** Everything that a killed process leased is recovered within that time. */
const RECOVERED_WITHIN_MS = 30_000

for (const mode of ['workflow', 'direct'] as const) {
  describe(`kill -9 of the process, in \`${mode}\``, () => {
    const stage = useStage()
    const start = () => stage.start({ env: { FIRST_ATTEMPT: mode } })
    /** Another process completes the delivery in time, counted from the kill just before. */
    async function recover(deliveryId: string): Promise<void> {
      const killedAt = Date.now()
      await start()
      const leftMs = RECOVERED_WITHIN_MS - (Date.now() - killedAt)
      await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, leftMs)
    }
    const isInline = async (deliveryId: string): Promise<boolean> => {
      const [row] = await stage.dataSource.query<{ inline: boolean }[]>(
        'SELECT workflow_started_at IS NULL AS inline FROM delivery WHERE id = $1',
        [deliveryId],
      )
      return row!.inline
    }
    const attemptsOf = (deliveryId: string) =>
      stage.dataSource.query<{ number: number; outcome: string }[]>(
        'SELECT number, outcome FROM attempt WHERE delivery_id = $1 ORDER BY number',
        [deliveryId],
      )

    it('between commit and start: makes the delivery once', async () => {
      // Without Temporal and without attempts of its own the process can commit but never start anything.
      const temporalAddress = `127.0.0.1:${await freePort()}`
      const away = await stage.start({ command: 'api', temporalAddress, awaitEngine: false })
      const deliveryId = await stage.publish(away)
      await away.kill()
      await start()
      await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, RECOVERED_WITHIN_MS)
      expect(stage.receiver.postsOf(deliveryId)).to.have.length(1)
    })

    it('in mid-POST of many: repeats each at most once with the same bytes, uses up no attempt, and loses nothing', async () => {
      const first = await start()
      await proveEndpoint(stage, first)
      const before = stage.receiver.posts.length
      stage.answerWith(() => null)
      const deliveries = await publishBurst(stage, first, 40)
      // A workflow starts so late that the endpoint is known to hang by then.
      const many = mode === 'workflow' ? 2 : 10
      await eventually(() => expect(stage.receiver.posts.length).to.be.at.least(before + many))
      const cutOff = String(stage.receiver.posts[before]!.headers['x-webhook-event-id'])
      expect(await isInline(cutOff)).to.equal(mode === 'direct')
      await first.kill()
      stage.answerWith(() => 200)
      const killedAt = Date.now()
      await start()
      for (const deliveryId of deliveries)
        await stage.reaches(
          deliveryId,
          { state: 'completed', attempts: 1 },
          RECOVERED_WITHIN_MS - (Date.now() - killedAt),
        )
      const posts = postsByDelivery(stage)
      for (const deliveryId of deliveries) expect(posts.get(deliveryId), deliveryId).to.be.within(1, 2)
      expect(posts.get(cutOff)).to.equal(2)
      const sent = stage.receiver
        .postsOf(cutOff)
        .map(({ body, headers }) => `${body.toString()} ${String(headers['x-webhook-signature'])}`)
      expect(new Set(sent).size).to.equal(1)
      expect(await attemptsOf(cutOff)).to.deep.equal([{ number: 1, outcome: 'succeeded' }])
    })

    it('between POST and record: makes at most one duplicate, and uses up no attempt', async () => {
      const first = await start()
      const blocker = await openTransaction(stage.dataSource)
      stage.answerWith(async (index) => {
        // The outcome cannot be written while the row is locked.
        if (index === 0)
          await blocker.query('SELECT 1 FROM delivery WHERE organisation_id = $1 FOR UPDATE', [
            stage.member.organisationId,
          ])
        return 200
      })
      const deliveryId = await stage.publish(first)
      await eventually(() => expect(stage.receiver.postsOf(deliveryId)[0]?.answeredAt).to.be.above(0))
      await untilWaitingForLock(stage.dataSource)
      await first.kill()
      // The killed process's backend notices only when it gets the lock; ended here, its write is certainly lost.
      await stage.dataSource.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
      await blocker.rollbackTransaction()
      await blocker.release()
      await recover(deliveryId)
      expect(stage.receiver.postsOf(deliveryId)).to.have.length(2)
      expect(await attemptsOf(deliveryId)).to.deep.equal([{ number: 1, outcome: 'succeeded' }])
    })

    // In every mode a workflow waits.
    if (mode === 'workflow')
      it('during a wait: makes the retry from another process', async () => {
        stage.answerWith((index) => (index < 3 ? 500 : 200))
        const first = await start()
        const deliveryId = await stage.publish(first)
        await stage.reaches(deliveryId, { state: 'waiting', attempts: 3 })
        await first.kill()
        await start()
        await stage.reaches(deliveryId, { state: 'completed', attempts: 4 }, RECOVERED_WITHIN_MS)
        expect(stage.receiver.postsOf(deliveryId)).to.have.length(4)
      })
  })
}

describe('an attempt that Temporal cancelled', () => {
  const stage = useStage()
  const client = useTemporalClient()

  it('finishes its POST and records it, while others continue', async () => {
    stage.answerWith(() => delay(12_000, 200))
    const posthorn = await stage.start()
    const deliveryId = await stage.publish(posthorn)
    await eventually(() => expect(stage.receiver.posts).to.have.length(1))
    await client.workflow.getHandle(`delivery/${deliveryId}`).terminate('by hand')
    // The worker learns of it with a heartbeat, within ten seconds, while the POST is still in progress.
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, 30_000)
    stage.answerWith(() => 200)
    const next = await stage.publish(posthorn)
    await stage.reaches(next, { state: 'completed', attempts: 1 })
    expect(stage.receiver.postsOf(deliveryId)).to.have.length(1)
    expect(await posthorn.stop()).to.equal(0)
  })
})

describe('API and worker in processes of their own', () => {
  const stage = useStage()

  it('deliver together; the API process alone posts nothing', async () => {
    const api = await stage.start({ command: 'api' })
    const deliveryId = await stage.publish(api)
    await stage.reaches(deliveryId, { state: 'pending', attempts: 0 })
    expect(stage.receiver.posts).to.have.length(0)
    await stage.start({ command: 'worker' })
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
  })
})

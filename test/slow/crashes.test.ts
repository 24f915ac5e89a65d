import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import { expect } from 'chai'
import { freePort } from '../../src/free-port.ts'
import { eventually } from '../helpers/eventually.ts'
import type { Answer } from '../helpers/receiver.ts'
import { testServers } from '../helpers/servers.ts'
import { createStage, type Stage } from '../helpers/stage.ts'
import { useStage } from '../helpers/use-stage.ts'

/** Everything that a killed process held is taken up again within that time. */
const RECOVERED_WITHIN_MS = 30_000

/** An endpoint that confirms after so long. */
const slowly =
  (ms: number): Answer =>
  async () => {
    await delay(ms)
    return 200
  }

describe('kill -9 of the process', function () {
  this.timeout(90_000)
  let stage: Stage

  beforeEach(async () => {
    stage = await createStage()
  })
  afterEach(() => stage.close())

  const attemptsOf = (deliveryId: string) =>
    stage.dataSource.query<{ number: number; outcome: string }[]>(
      'SELECT number, outcome FROM attempt WHERE delivery_id = $1 ORDER BY number',
      [deliveryId],
    )

  it('between commit and start: the delivery is made, once', async () => {
    // Without an engine the process can commit but never start anything.
    const away = await stage.start({ temporalAddress: `127.0.0.1:${await freePort()}`, awaitEngine: false })
    const deliveryId = await stage.publish(away)
    await away.kill()
    await stage.start()
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, RECOVERED_WITHIN_MS)
    expect(stage.receiver.postsOf(deliveryId)).to.have.length(1)
  })

  it('in mid-POST: the same attempt is made again, with the same bytes, and no attempt is used up', async () => {
    stage.answerWith((index) => (index === 0 ? null : 200))
    const first = await stage.start()
    const deliveryId = await stage.publish(first)
    await eventually(() => expect(stage.receiver.postsOf(deliveryId)).to.have.length(1))
    await first.kill()
    await stage.start()
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, RECOVERED_WITHIN_MS)
    const posts = stage.receiver.postsOf(deliveryId)
    expect(posts).to.have.length(2)
    expect(
      new Set(
        posts.map(({ body, headers }) => `${body.toString()} ${String(headers['x-webhook-signature'])}`),
      ).size,
    ).to.equal(1)
    expect(await attemptsOf(deliveryId)).to.deep.equal([{ number: 1, outcome: 'succeeded' }])
  })

  it('between POST and record: at most one duplicate, and no attempt is used up', async () => {
    const first = await stage.start()
    const blocker = stage.dataSource.createQueryRunner()
    await blocker.connect()
    await blocker.startTransaction()
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
    await eventually(async () => {
      const waiting = await stage.dataSource.query<object[]>(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
      expect(waiting).to.have.length(1)
    })
    await first.kill()
    // The killed process's backend notices only when it gets the lock; ended here, its write is certainly lost.
    await stage.dataSource.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    await blocker.rollbackTransaction()
    await blocker.release()
    await stage.start()
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, RECOVERED_WITHIN_MS)
    expect(stage.receiver.postsOf(deliveryId)).to.have.length(2)
    expect(await attemptsOf(deliveryId)).to.deep.equal([{ number: 1, outcome: 'succeeded' }])
  })

  it('in mid-wait: the retry comes all the same, from another process', async () => {
    stage.answerWith((index) => (index < 3 ? 500 : 200))
    const first = await stage.start()
    const deliveryId = await stage.publish(first)
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 3 })
    await first.kill()
    await stage.start()
    await stage.reaches(deliveryId, { state: 'completed', attempts: 4 }, RECOVERED_WITHIN_MS)
    expect(stage.receiver.postsOf(deliveryId)).to.have.length(4)
  })
})

describe('SIGTERM with attempts under way', function () {
  this.timeout(90_000)
  const stage = useStage()

  it('lets fifty slow POSTs finish, records them, and ends with exit code 0', async () => {
    stage.answerWith(slowly(3_000))
    const posthorn = await stage.start()
    const deliveries = await Promise.all(Array.from({ length: 50 }, () => stage.publish(posthorn)))
    await eventually(() => expect(stage.receiver.posts).to.have.length(50))
    expect(await posthorn.stop()).to.equal(0)
    for (const deliveryId of deliveries) {
      await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
      expect(stage.receiver.postsOf(deliveryId)).to.have.length(1)
    }
  })
})

describe('an attempt that the engine no longer wants', function () {
  this.timeout(90_000)
  const stage = useStage()

  it('does not harm the process: its POST ends, is recorded, and others go on', async () => {
    stage.answerWith(slowly(13_000))
    const posthorn = await stage.start()
    const deliveryId = await stage.publish(posthorn)
    await eventually(() => expect(stage.receiver.posts).to.have.length(1))
    const connection = await Connection.connect({ address: testServers().temporalAddress })
    await new Client({ connection }).workflow.getHandle(`delivery/${deliveryId}`).terminate('by hand')
    await connection.close()
    // The worker hears of it with a heartbeat, within ten seconds, while the POST is still under way.
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, 30_000)
    stage.answerWith(() => 200)
    const next = await stage.publish(posthorn)
    await stage.reaches(next, { state: 'completed', attempts: 1 })
    expect(stage.receiver.postsOf(deliveryId)).to.have.length(1)
    expect(await posthorn.stop()).to.equal(0)
  })
})

describe('API and worker in processes of their own', function () {
  this.timeout(60_000)
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

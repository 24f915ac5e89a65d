import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { createStage, useStage } from '../helpers/processes/stage.ts'
import type { Receiver } from '../helpers/receivers/receiver.ts'
import { createPlayDatabase } from './play/database.ts'
import { createFakeClock, type FakeClock } from './rig/fake-clock.ts'

/** From the end of an attempt as its receiver saw it; the database may believe a claim a few milliseconds early. */
const WAITS_MS = [1_000, 2_000, 4_000, 8_000]
const EARLY_MS = 3

/** Allows for other load on the machine, and is smaller than the clock skew. */
const SKEW_S = 10
const LATE_MS = 9_000

const HOUR_S = 3_600

/** Of an answer: longer than it takes to step a clock. */
const SLOW_MS = 1_500

describe('clocks that do not agree', () => {
  const stage = useStage()
  const clocks: FakeClock[] = []

  before(function () {
    const clock = createFakeClock(0)
    clock?.remove()
    if (clock !== null) return
    process.stderr.write(
      'SKIPPED: libfaketime is not installed, so no clock is stepped (apt-get install faketime)\n',
    )
    this.skip()
  })
  afterEach(() => {
    for (const clock of clocks.splice(0)) clock.remove()
  })

  function fakeClock(offsetSeconds: number): FakeClock {
    const clock = createFakeClock(offsetSeconds)!
    clocks.push(clock)
    return clock
  }
  /** How much later than its time each retry of a delivery came. */
  function lateness(posts: Receiver['posts']): number[] {
    return posts
      .slice(1)
      .map(({ arrivedAt }, index) => arrivedAt - posts[index]!.answeredAt - WAITS_MS[index]!)
  }
  const expectPunctual = (deliveryId: string): void => {
    lateness(stage.receiver.postsOf(deliveryId)).forEach((ms, index) =>
      expect(ms, `attempt ${index + 2}`).to.be.within(-EARLY_MS, LATE_MS),
    )
  }

  it('cause no early or late retry while one worker is ten seconds ahead and one ten behind', async () => {
    stage.answerWith((index) => (index < 3 ? 503 : 200))
    const [ahead, behind] = [fakeClock(SKEW_S), fakeClock(-SKEW_S)]
    const first = await stage.start({ env: ahead.env })
    const second = await stage.start({ env: behind.env })
    await stage.start()
    const deliveries = []
    for (let count = 0; count < 12; count++)
      deliveries.push(await stage.publish(count % 2 === 0 ? first : second))
    for (const deliveryId of deliveries) {
      await stage.reaches(deliveryId, { state: 'completed', attempts: 4 }, 60_000)
      expectPunctual(deliveryId)
    }
    // Each process did its part, and dated it by the clock of the database.
    const [dates] = await stage.dataSource.query<{ earliest: number; latest: number }[]>(
      `SELECT extract(epoch FROM min(a.started_at - d.created_at))::float8 AS earliest,
              extract(epoch FROM max(a.started_at + a.duration_ms * interval '1 ms' - now()))::float8 AS latest
         FROM attempt a JOIN delivery d ON d.id = a.delivery_id`,
    )
    expect(dates!.earliest).to.be.within(-0.1, LATE_MS / 1_000)
    expect(dates!.latest).to.be.at.most(0.1)
    expect(first.log()).to.include('clock.skew_detected')
  })

  it('neither delay nor advance anything when the clock of a worker is stepped by an hour during a wait', async () => {
    stage.answerWith((index) => (index < 4 ? 503 : 200))
    const clock = fakeClock(0)
    const posthorn = await stage.start({ env: clock.env })
    const deliveryId = await stage.publish(posthorn)
    const posts = () => stage.receiver.postsOf(deliveryId).length
    const publishAnother = async (): Promise<void> => {
      const startedAtMs = performance.now()
      const other = await stage.publish(posthorn)
      await eventually(() => expect(stage.receiver.postsOf(other)).not.to.have.length(0))
      expect(performance.now() - startedAtMs).to.be.below(LATE_MS)
    }
    await eventually(() => expect(posts()).to.equal(3))
    // In the last second of the four the attempt waits in the worker.
    await delay(3_300)
    clock.set(-HOUR_S)
    await publishAnother()
    await eventually(() => expect(posts()).to.equal(4))
    clock.set(HOUR_S)
    await publishAnother()
    await stage.reaches(deliveryId, { state: 'completed', attempts: 5 })
    expectPunctual(deliveryId)
  })

  for (const stepS of [SKEW_S, -SKEW_S])
    it(`lose and repeat nothing when PostgreSQL's own clock is ${stepS} s off for a while: what waits is moved by as much`, async () => {
      const clock = fakeClock(0)
      const database = await createPlayDatabase(clock.env)
      const { url, dataSource } = database
      const moved = await createStage({ database: { url, dataSource, drop: () => database.close() } })
      // Some attempts are in progress at each step, and some deliveries wait.
      moved.answerWith(async (index) => {
        await delay(SLOW_MS)
        return index < 2 ? 503 : 200
      })
      const processes = [await moved.start(), await moved.start()]
      const deliveries: string[] = []
      for (const offsetS of [0, stepS, 0]) {
        clock.set(offsetS)
        for (let count = 0; count < 6; count++) {
          deliveries.push(await moved.publish(processes[count % 2]!))
          await delay(SLOW_MS / 3)
        }
      }
      for (const id of deliveries) {
        await moved.reaches(id, { state: 'completed', attempts: 3 }, 60_000)
        const posts = moved.receiver.postsOf(id)
        expect(posts).to.have.length(3)
        for (const ms of lateness(posts))
          expect(ms).to.be.within(-SKEW_S * 1_000 - EARLY_MS, SKEW_S * 1_000 + LATE_MS)
      }
      await moved.close()
    })
})

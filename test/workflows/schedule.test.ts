import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { useDatabase } from '../helpers/database/database.ts'
import { skipDeliveryTime } from '../helpers/database/skip-delivery-time.ts'
import { useAttempts } from '../helpers/deliveries/use-attempts.ts'
import { useTemporal } from '../helpers/temporal/time-skipping.ts'

/** Spec 8.1, written out: 33 hours and a half in all. */
const SCHEDULE_MS = [1_000, 2_000, 4_000, 8_000, 300_000, 1_800_000, 7_200_000, 21_600_000, 86_400_000]

/** That of production: `RETRY_LEAD_MS` in `src/process/service.ts`. */
const LEAD_MS = 1_000

/** A slow endpoint takes so long for each answer. */
const SLOW_MS = 400

/**
 * All instants are those of one clock, which follows a Temporal server that skips time. While an attempt is under way
 * that clock runs in real time: in the rest until the due instant too, so that this rest is the code of production.
 */
describe('the retry schedule, POST to POST, on a time-skipping server', () => {
  const suite = useAttempts()
  const temporal = useTemporal()

  /** Delivers to an endpoint that never confirms, or at one attempt only. Returns how late each retry came, in ms. */
  async function deliver({ leadMs = LEAD_MS, answerAfterMs = 0, confirmed = Infinity }) {
    const { delivery } = await suite.publish()
    const posts: { beganAtMs: number; endedAtMs: number }[] = []
    const result = await temporal.withWorkflows(
      suite.dependencies,
      async (workflows, _taskQueue, clock) => {
        suite.answerWith(async (index) => {
          const beganAtMs = clock.nowMs()
          await delay(answerAfterMs)
          posts.push({ beganAtMs, endedAtMs: clock.nowMs() })
          return index + 1 === confirmed ? 200 : 503
        })
        await workflows.start(delivery, { number: 1, dueAtMs: null })
        return temporal.resultOf(delivery.deliveryId)
      },
      { leadMs },
    )
    const lateMs = posts
      .slice(1)
      .map(({ beganAtMs }, index) => beganAtMs - posts[index]!.endedAtMs - SCHEDULE_MS[index]!)
    return { result, posts, lateMs, row: await suite.row(delivery.deliveryId) }
  }

  it('makes ten attempts, none early and none late, and then the delivery has failed permanently', async () => {
    const { result, posts, lateMs, row } = await deliver({})
    expect(result).to.deep.equal({ state: 'failed', attempts: 10 })
    expect(row).to.include({ state: 'failed', attempts: 10 })
    expect(posts).to.have.length(10)
    expect(Math.min(...lateMs), `early: ${String(lateMs)}`).to.be.at.least(0)
    // What Temporal and the worker take from the timer to the claim is hidden by the lead, and not by anything else.
    const { lateMs: withoutLead } = await deliver({ leadMs: 0 })
    const [least, without] = [Math.min(...lateMs), Math.min(...withoutLead)]
    expect(without).to.be.at.least(0)
    expect(least, `late: ${String(lateMs)}; without a lead: ${String(withoutLead)}`).to.be.below(without / 2)
  })

  it('counts each wait from the end of the attempt before, also where the endpoint was slow to answer', async () => {
    const { result, lateMs } = await deliver({ answerAfterMs: SLOW_MS, confirmed: 4 })
    expect(result).to.deep.equal({ state: 'completed', attempts: 4 })
    // Counted from its start they would come earlier by all of that time.
    expect(Math.min(...lateMs), `early: ${String(lateMs)}`).to.be.at.least(0)
    expect(Math.min(...lateMs), `late: ${String(lateMs)}`).to.be.below(SLOW_MS)
  })
})

describe('the clock of deliveries in a test database', () => {
  const database = useDatabase()
  const temporal = useTemporal()
  const nowMs = async () => {
    const [row] = await database.dataSource.query<{ now: Date }[]>('SELECT delivery_now() AS now')
    return row!.now.getTime()
  }

  it('follows a Temporal server that skips time, and is never behind it', async () => {
    for (const skipped of ['1 second', '6 minutes', '2 days'] as const) {
      await temporal.environment.sleep(skipped)
      const { follow } = await skipDeliveryTime(database.dataSource, temporal.environment)
      const startedAtMs = performance.now()
      const beforeMs = await temporal.environment.currentTimeMs()
      await follow()
      const aheadMs = (await nowMs()) - beforeMs
      // No further than the time that passed, and what the measurement of the clock may add, which is part of that time.
      expect(aheadMs, skipped).to.be.within(0, 2 * (performance.now() - startedAtMs) + 5)
    }
    expect(await nowMs()).to.be.above(Date.now() + 2 * 86_400_000)
  })
})

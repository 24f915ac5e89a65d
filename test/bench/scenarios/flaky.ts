import { columns } from '../measure/distribution.ts'
import { firstPosts, settlePublished } from '../measure/ledger.ts'
import { earlyRetries, retryLateness } from '../measure/retry-lateness.ts'
import type { Row, Scenario } from '../scenario.ts'

const EVENT_KEY = 'customer:created'
const PER_SECOND = 200
const EVENTS = 6_000
const QUICK_EVENTS = 200
/** One delivery in so many is refused once; the first row is for comparison. */
const REFUSED_OF = [null, 100, 20, 5]

/** An endpoint that is up, and refuses a share of its deliveries: whether the others wait for it. */
export const flaky: Scenario = {
  letter: 'o',
  name: 'flaky',
  title: `${PER_SECOND} events a second to a webhook that refuses some of them once`,
  async run(bench) {
    const rows: Row[] = []
    const problems: string[] = []
    const events = bench.quick ? QUICK_EVENTS : EVENTS
    for (const of of REFUSED_OF) {
      bench.say(of === null ? 'nothing is refused' : `one in ${of} is refused once`)
      const path = of === null ? '/ok/hook' : `/flaky/${of}/hook`
      const stage = await bench.openStage({ webhooks: [{ path, eventKey: EVENT_KEY }] })
      const published = await stage.publish(EVENT_KEY, {
        pace: { kind: 'open', perSecond: PER_SECOND },
        limit: { events },
      })
      await stage.arrived(path, { deliveries: events })
      problems.push(...(await stage.settled()))
      const arrivals = await stage.takeArrivals()
      const { lost, doubled, problems: broken } = settlePublished(published, arrivals)
      const waits = firstPosts(published, arrivals).map(
        ({ event, arrival }) => arrival.arrivedAt - event.intendedAt,
      )
      const retries = retryLateness(arrivals)
      const lateMs = retries.map((retry) => retry.lateMs)
      rows.push({
        refused: of === null ? 'none' : `1 in ${of}`,
        ...columns(waits),
        retries: retries.length,
        ...(retries.length === 0 ? {} : columns(lateMs, 'late')),
        lost,
        doubled,
      })
      problems.push(...broken, ...earlyRetries(retries))
      await stage.close()
    }
    return { rows, problems }
  },
}

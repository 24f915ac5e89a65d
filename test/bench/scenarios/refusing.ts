import { columns } from '../measure/distribution.ts'
import { firstPosts, refusals } from '../measure/ledger.ts'
import type { Scenario } from '../scenario.ts'

const EVENT_KEY = 'customer:created'
/** More POSTs than any schedule has attempts. */
const PATH = '/fail/99/hook'
const EVENTS = 500
const QUICK_EVENTS = 30
const CONCURRENT = 16

/** An endpoint that has never confirmed anything: how long its first attempts take, and that its retries keep time. */
export const refusing: Scenario = {
  letter: 'p',
  name: 'refusing',
  title: `${EVENTS} events at once to a webhook that refuses everything`,
  async run(bench) {
    const events = bench.quick ? QUICK_EVENTS : EVENTS
    const stage = await bench.openStage({ webhooks: [{ path: PATH, eventKey: EVENT_KEY }] })
    const published = await stage.publish(EVENT_KEY, {
      pace: { kind: 'closed', concurrency: CONCURRENT },
      limit: { events },
    })
    await stage.arrived(PATH, { deliveries: events })
    const arrivals = await stage.takeArrivals()
    const firsts = firstPosts(published, arrivals)
    const waits = firsts.map(({ event, arrival }) => arrival.arrivedAt - event.intendedAt)
    const problems = [
      ...refusals(published),
      ...(firsts.length < events ? [`${events - firsts.length} of ${events} deliveries not attempted`] : []),
    ]
    await stage.close()
    return { rows: [{ events, ...columns(waits), posts: arrivals.length }], problems }
  },
}

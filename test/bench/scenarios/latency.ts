import { firstPosts, settlePublished } from '../measure/ledger.ts'
import { columns } from '../measure/distribution.ts'
import type { FirstAttempt, Row, Scenario } from '../scenario.ts'

const EVENT_KEY = 'customer:created'
const PATH = '/ok/hook'
const SECONDS = 20
/** Enough for a 99th percentile that is not the maximum. */
const FEWEST_EVENTS = 150
/** At a pace above what Temporal does, this bounds how long the backlog takes. */
const MOST_EVENTS = 8_000

/** At 50 a second and above, workflow by workflow a queue grows on two cores: 20 is where it does not. */
function paces(firstAttempt: FirstAttempt): number[] {
  if (firstAttempt === 'workflow') return [5, 20, 50, 200]
  return firstAttempt === 'direct' ? [5, 50, 200, 800] : [5, 50, 200]
}

/**
 * From publishing to the arrival of the POST, at a fixed pace that waits for nothing. `p50Ms` and the like count from
 * when the event was to be sent, so a generator delayed by a slow API hides nothing; `sent…` from when it was.
 */
export const latency: Scenario = {
  letter: 'b',
  name: 'latency',
  title: 'from publish to POST at a fixed pace',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [{ path: PATH, eventKey: EVENT_KEY }] })
    const rows: Row[] = []
    const problems: string[] = []
    for (const perSecond of paces(bench.firstAttempt)) {
      const usual = Math.min(MOST_EVENTS, Math.max(FEWEST_EVENTS, perSecond * SECONDS))
      const events = bench.quick ? Math.max(10, perSecond) : usual
      bench.say(`${events} events, ${perSecond} a second`)
      const published = await stage.publish(EVENT_KEY, {
        pace: { kind: 'open', perSecond },
        limit: { events },
      })
      await stage.arrived(PATH, { deliveries: events })
      // What follows later must not cost the next pace anything.
      problems.push(...(await stage.settled()))
      const arrivals = await stage.takeArrivals()
      const posts = firstPosts(published, arrivals)
      const { lost, doubled, problems: broken } = settlePublished(published, arrivals)
      rows.push({
        perSecond,
        events,
        ...columns(posts.map(({ event, arrival }) => arrival.arrivedAt - event.intendedAt)),
        ...columns(
          posts.map(({ event, arrival }) => arrival.arrivedAt - event.sentAt),
          'sent',
        ),
        lost,
        doubled,
      })
      problems.push(...broken)
    }
    await stage.close()
    return { rows, problems }
  },
}

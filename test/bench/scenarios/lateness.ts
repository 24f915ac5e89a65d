import { columns, rounded } from '../measure/distribution.ts'
import { settlePublished } from '../measure/ledger.ts'
import { earlyRetries, retryLateness, type Retry } from '../measure/retry-lateness.ts'
import type { Row, Scenario } from '../scenario.ts'

const EVENT_KEY = 'customer:created'
const REFUSED = 4
const PATH = `/fail/${REFUSED}/hook`
const DELIVERIES = 200
const QUICK_DELIVERIES = 20
/** Times five attempts each: 20 attempts a second, once the first deliveries are at their last retry. */
const PER_SECOND = 4

/** How long after its instant each of the retries 2 to 5 arrives, over deliveries that fail four times. */
export const lateness: Scenario = {
  letter: 'e',
  name: 'lateness',
  title: 'how long after their instant retries arrive, at 20 attempts a second',
  async run(bench) {
    const events = bench.quick ? QUICK_DELIVERIES : DELIVERIES
    const stage = await bench.openStage({ webhooks: [{ path: PATH, eventKey: EVENT_KEY }] })
    bench.say(`${events} deliveries of ${REFUSED + 1} attempts`)
    const pace = { kind: 'open', perSecond: PER_SECOND } as const
    const published = await stage.publish(EVENT_KEY, { pace, limit: { events } })
    await stage.arrived(PATH, { posts: events * (REFUSED + 1) })
    const arrivals = await stage.takeArrivals()
    await stage.close()
    const retries = retryLateness(arrivals)
    const { lost, doubled, problems } = settlePublished(published, arrivals)
    const rows = [2, 3, 4, 5].map((attempt) => ({
      attempt: String(attempt),
      ...figures(retries.filter((retry) => retry.attempt === attempt)),
    }))
    return {
      rows: [...rows, { attempt: 'all', ...figures(retries), lost, doubled }],
      problems: [...problems, ...earlyRetries(retries)],
    }
  },
}

function figures(retries: readonly Retry[]): Row {
  const late = retries.map(({ lateMs }) => lateMs)
  return { retries: late.length, earliestMs: rounded(Math.min(...late)), ...columns(late) }
}

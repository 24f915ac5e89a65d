import { deliver } from '../load.ts'
import { columns } from '../measure/distribution.ts'
import { earlyRetries, retryLateness } from '../measure/retry-lateness.ts'
import type { Row, Scenario } from '../scenario.ts'
import { HOOK } from '../stage.ts'

const PACE = { kind: 'open', perSecond: 200 } as const
const EVENTS = 6_000
const QUICK_EVENTS = 200
/** One delivery in so many is refused once; the first row is for comparison. */
const REFUSED_OF = [null, 100, 20, 5]

/** An endpoint that is up, and refuses a share of its deliveries: whether the others wait for it. */
export const flaky: Scenario = {
  letter: 'o',
  name: 'flaky',
  title: `${PACE.perSecond} events a second to a webhook that refuses some of them once`,
  async run(bench) {
    const rows: Row[] = []
    const problems: string[] = []
    const events = bench.quick ? QUICK_EVENTS : EVENTS
    for (const of of REFUSED_OF) {
      bench.say(of === null ? 'nothing is refused' : `one in ${of} is refused once`)
      const webhook = of === null ? HOOK : { ...HOOK, path: `/flaky/${of}/hook` }
      const stage = await bench.openStage({ webhooks: [webhook] })
      const delivered = await deliver(stage, webhook, { events, pace: PACE, isSettled: true })
      const retries = retryLateness(delivered.arrivals)
      const lateMs = retries.map((retry) => retry.lateMs)
      rows.push({
        refused: of === null ? 'none' : `1 in ${of}`,
        ...columns(delivered.waits),
        retries: retries.length,
        ...(retries.length === 0 ? {} : columns(lateMs, 'late')),
        lost: delivered.lost,
        doubled: delivered.doubled,
      })
      problems.push(...delivered.unsettled, ...delivered.problems, ...earlyRetries(retries))
      await stage.close()
    }
    return { rows, problems }
  },
}

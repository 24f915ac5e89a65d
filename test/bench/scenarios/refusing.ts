import { deliver } from '../load.ts'
import { columns } from '../measure/distribution.ts'
import { refusals } from '../measure/ledger.ts'
import type { Scenario } from '../scenario.ts'

/** More POSTs than any schedule has attempts. */
const REFUSING = { path: '/fail/99/hook', eventKey: 'customer:created' }
const EVENTS = 500
const QUICK_EVENTS = 30

/** An endpoint that has never confirmed anything: how long its first attempts take, and that its retries keep time. */
export const refusing: Scenario = {
  letter: 'p',
  name: 'refusing',
  title: `${EVENTS} events at once to a webhook that refuses everything`,
  async run(bench) {
    const events = bench.quick ? QUICK_EVENTS : EVENTS
    const stage = await bench.openStage({ webhooks: [REFUSING] })
    const pace = { kind: 'closed', concurrency: 16 } as const
    const { published, arrivals, waits } = await deliver(stage, REFUSING, { events, pace })
    const missing = events - waits.length
    const problems = [
      ...refusals(published),
      ...(missing > 0 ? [`${missing} of ${events} deliveries not attempted`] : []),
    ]
    await stage.close()
    return { rows: [{ events, ...columns(waits), posts: arrivals.length }], problems }
  },
}

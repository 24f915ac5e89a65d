import { burstFigures } from '../measure/burst-figures.ts'
import type { Row, Scenario } from '../scenario.ts'

const EVENT_KEY = 'customer:created'
const PATH = '/ok/hook'
const EVENTS = 5_000
const QUICK_EVENTS = 200
const BURSTS = 3

/** The first burst of a process that was just started and has delivered nothing yet, and the next ones. */
export const cold: Scenario = {
  letter: 'j',
  name: 'cold',
  title: 'the first burst of a process, and the ones after it',
  async run(bench) {
    const stage = await bench.openStage({
      webhooks: [{ path: PATH, eventKey: EVENT_KEY }],
      isWarmedUp: false,
    })
    const rows: Row[] = []
    const problems: string[] = []
    const events = bench.quick ? QUICK_EVENTS : EVENTS
    for (let burst = 1; burst <= BURSTS; burst++) {
      bench.say(`burst ${burst}: ${events} events, 32 at once`)
      const pace = { kind: 'closed', concurrency: 32 } as const
      const published = await stage.publish(EVENT_KEY, { pace, limit: { events } })
      await stage.arrived(PATH, { deliveries: events })
      const figures = burstFigures(published, await stage.takeArrivals())
      const { publishedPerSecond, tookMs, perSecond, lost, doubled } = figures
      rows.push({ burst, events, publishedPerSecond, tookMs, perSecond, lost, doubled })
      problems.push(...figures.problems)
    }
    await stage.close()
    return { rows, problems }
  },
}

import { columns } from '../measure/distribution.ts'
import { firstPosts, settlePublished } from '../measure/ledger.ts'
import { rounded } from '../measure/distribution.ts'
import { untilQuiet } from '../measure/until-quiet.ts'
import type { Bench, Findings, Row, Scenario } from '../scenario.ts'
import type { Stage } from '../stage.ts'

const EVENT_KEY = 'customer:created'
const PATH = '/ok/hook'
const PER_SECOND = 5
const EVENTS = 200
const QUICK_EVENTS = 20
const BURST = 5_000
const QUICK_BURST = 200

/** Events at a slow pace on a quiet instance, then the same right after a burst whose workflows have just begun to follow. */
export const afterBurst: Scenario = {
  letter: 'i',
  name: 'after-burst',
  title: 'from publish to POST on a quiet instance, and right after a burst',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [{ path: PATH, eventKey: EVENT_KEY }] })
    await untilQuiet(stage)
    const quiet = await measure(bench, stage, 'quiet')
    await stage.settled()
    await untilQuiet(stage)
    const burst = bench.quick ? QUICK_BURST : BURST
    bench.say(`${burst} events, 32 at once`)
    const pace = { kind: 'closed', concurrency: 32 } as const
    await stage.publish(EVENT_KEY, { pace, limit: { events: burst } })
    await stage.arrived(PATH, { deliveries: burst })
    await stage.takeArrivals()
    const after = await measure(bench, stage, 'after the burst')
    await stage.close()
    const ratio = (column: string): number => rounded(Number(after.row[column]) / Number(quiet.row[column]))
    return {
      rows: [quiet.row, { ...after.row, p50Ratio: ratio('p50Ms'), p99Ratio: ratio('p99Ms') }],
      problems: [...quiet.problems, ...after.problems],
    }
  },
}

async function measure(
  bench: Bench,
  stage: Stage,
  when: string,
): Promise<{ row: Row; problems: Findings['problems'] }> {
  const events = bench.quick ? QUICK_EVENTS : EVENTS
  bench.say(`${events} events, ${PER_SECOND} a second, ${when}`)
  const published = await stage.publish(EVENT_KEY, {
    pace: { kind: 'open', perSecond: PER_SECOND },
    limit: { events },
  })
  await stage.arrived(PATH, { deliveries: events })
  const arrivals = await stage.takeArrivals()
  const { lost, doubled, problems } = settlePublished(published, arrivals)
  const waits = firstPosts(published, arrivals).map(
    ({ event, arrival }) => arrival.arrivedAt - event.intendedAt,
  )
  return { row: { when, events, ...columns(waits), lost, doubled }, problems }
}

import { BURST, deliver } from '../load.ts'
import { columns, compared } from '../measure/distribution.ts'
import { untilQuiet } from '../measure/until-quiet.ts'
import type { Bench, Measured, Scenario } from '../scenario.ts'
import { HOOK, type Stage } from '../stage.ts'

const PER_SECOND = 5
const EVENTS = 200
const QUICK_EVENTS = 20
const BURST_EVENTS = 5_000
const QUICK_BURST_EVENTS = 200

/** Events at a slow pace on a quiet instance, then the same right after a burst whose workflows have just begun to follow. */
export const afterBurst: Scenario = {
  letter: 'i',
  name: 'after-burst',
  title: 'from publish to POST on a quiet instance, and right after a burst',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [HOOK] })
    await untilQuiet(stage)
    const quiet = await measure(bench, stage, 'quiet')
    await stage.settled()
    await untilQuiet(stage)
    const events = bench.quick ? QUICK_BURST_EVENTS : BURST_EVENTS
    bench.say(`${events} events, 32 at once`)
    await deliver(stage, HOOK, { events, pace: BURST })
    const after = await measure(bench, stage, 'after the burst')
    await stage.close()
    return compared(quiet, after, ['p50Ms', 'p99Ms'])
  },
}

async function measure(bench: Bench, stage: Stage, when: string): Promise<Measured> {
  const events = bench.quick ? QUICK_EVENTS : EVENTS
  bench.say(`${events} events, ${PER_SECOND} a second, ${when}`)
  const pace = { kind: 'open', perSecond: PER_SECOND } as const
  const { waits, lost, doubled, problems } = await deliver(stage, HOOK, { events, pace })
  return { row: { when, events, ...columns(waits), lost, doubled }, problems }
}

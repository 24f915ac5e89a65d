import { deliver, type Load } from '../load.ts'
import { columns } from '../measure/distribution.ts'
import { firstPosts } from '../measure/ledger.ts'
import type { Bench, Findings, FirstAttempt, Scenario } from '../scenario.ts'
import { runNoops } from '../noop/noop.ts'
import { HOOK, type Stage } from '../stage.ts'

const SECONDS = 20
/** Enough for a 99th percentile that is not the maximum. */
const FEWEST_EVENTS = 150
const QUICK_EVENTS = 10
/** At a pace above what Temporal does, this bounds how long the backlog takes. */
const MOST_EVENTS = 8_000

/** At 50 a second and above, workflow by workflow a queue grows on two cores: 20 is where it does not. */
function paces(firstAttempt: FirstAttempt): number[] {
  if (firstAttempt === 'workflow') return [5, 20, 50, 200]
  return firstAttempt === 'direct' ? [5, 50, 200, 800] : [5, 50, 200]
}

/**
 * From publishing to the arrival of the POST, at a fixed pace that waits for nothing. `p50Ms` and the like count from
 * when the event was to be sent, so a generator delayed by a slow API hides nothing; `sent…` from when it was. Next to the
 * smallest program that does the same, but for `workflow`; and but for `direct`, at the lowest pace, next to workflows with
 * an activity that does nothing, from start to activity.
 */
export const latency: Scenario = {
  letter: 'b',
  name: 'latency',
  title: 'from publish to POST at a fixed pace',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [HOOK] })
    const floor = bench.firstAttempt === 'workflow' ? null : await bench.openFloor(HOOK.path)
    const findings: Findings = { rows: [], problems: [] }
    for (const perSecond of paces(bench.firstAttempt)) {
      await measure(bench, stage, { program: 'posthorn', perSecond }, findings)
      if (floor !== null) await measure(bench, floor, { program: 'floor', perSecond }, findings)
    }
    if (bench.firstAttempt !== 'direct') await measureNoops(bench, stage, findings)
    await floor?.close()
    await stage.close()
    return findings
  },
}

async function measureNoops(bench: Bench, { engine }: Stage, { rows }: Findings): Promise<void> {
  const perSecond = paces(bench.firstAttempt)[0]!
  const events = bench.quick ? QUICK_EVENTS : FEWEST_EVENTS
  bench.say(`${events} workflows that do nothing, ${perSecond} a second`)
  const { waits } = await runNoops(engine.address, events, { kind: 'open', perSecond })
  rows.push({ perSecond, events, program: 'workflow that does nothing', ...columns(waits) })
}

async function measure(
  bench: Bench,
  load: Load,
  { program, perSecond }: { program: string; perSecond: number },
  { rows, problems }: Findings,
): Promise<void> {
  const usual = Math.min(MOST_EVENTS, Math.max(FEWEST_EVENTS, perSecond * SECONDS))
  const events = bench.quick ? Math.max(QUICK_EVENTS, perSecond) : usual
  bench.say(`${events} events, ${perSecond} a second, to ${program}`)
  const pace = { kind: 'open', perSecond } as const
  // What follows later must not cost the next pace anything.
  const delivered = await deliver(load, HOOK, { events, pace, isSettled: true })
  const { published, arrivals, waits, lost, doubled } = delivered
  const sent = firstPosts(published, arrivals).map(({ event, arrival }) => arrival.arrivedAt - event.sentAt)
  rows.push({ perSecond, events, program, ...columns(waits), ...columns(sent, 'sent'), lost, doubled })
  problems.push(...delivered.unsettled, ...delivered.problems)
}

import { START_CONCURRENCY } from '../../../src/process/dispatch.ts'
import { burstFigures } from '../measure/burst-figures.ts'
import { rounded } from '../measure/distribution.ts'
import { clock } from '../measure/clock.ts'
import { difference, total, untilQuiet } from '../measure/until-quiet.ts'
import { measureNoop } from '../noop/measure-noop.ts'
import type { Bench, Row, Scenario } from '../scenario.ts'
import type { Stage } from '../stage.ts'

const EVENT_KEY = 'customer:created'
const PATH = '/ok/hook'
const CONCURRENCY = 32
const EVENTS = 5_000
/** Workflow by workflow it takes ten times as long, and the rate is the same from start to end. */
const WORKFLOW_EVENTS = 1_500
const QUICK_EVENTS = 200

/**
 * From the first publish to the last arrival. With FIRST_ATTEMPT=workflow Temporal's own rate is measured on the same
 * server, before and after: workflows that do nothing, as many, started the same way. `settledMs`
 * is until all is recorded and, with `overflow`, every delivery has the workflow that follows it, and `cpuMsEach` the
 * processor time until then, of Posthorn, its database and Temporal.
 */
export const burst: Scenario = {
  letter: 'c',
  name: 'burst',
  title: 'events published as fast as they are acknowledged, until the last has arrived',
  async run(bench) {
    const isWorkflow = bench.firstAttempt === 'workflow'
    const full = isWorkflow ? WORKFLOW_EVENTS : EVENTS
    const events = bench.quick ? QUICK_EVENTS : full
    const stage = await bench.openStage({ webhooks: [{ path: PATH, eventKey: EVENT_KEY }] })
    const noops: number[] = []
    if (isWorkflow) noops.push(await noop(bench, stage, events))
    const { row, problems } = await measureBurst(bench, stage, events)
    // Its polls and its sweep would run during the second measurement of Temporal.
    await stage.stopPosthorn()
    if (isWorkflow) noops.push(await noop(bench, stage, events))
    await stage.close()
    return { rows: [{ ...row, ...ratioTo(noops, Number(row['perSecond'])) }], problems }
  },
}

async function noop(bench: Bench, stage: Stage, workflows: number): Promise<number> {
  bench.say(`${workflows} workflows that do nothing`)
  return measureNoop({ address: stage.engine.address, workflows, concurrency: START_CONCURRENCY })
}

async function measureBurst(
  bench: Bench,
  stage: Stage,
  events: number,
): Promise<{ row: Row; problems: string[] }> {
  // Temporal puts away what ended in the warm-up.
  const cpuBefore = await untilQuiet(stage)
  bench.say(`${events} events, ${CONCURRENCY} at once`)
  const pace = { kind: 'closed', concurrency: CONCURRENCY } as const
  const published = await stage.publish(EVENT_KEY, { pace, limit: { events } })
  const startedAt = Math.min(...published.map(({ sentAt }) => sentAt))
  await stage.arrived(PATH, { deliveries: events })
  const unsettled = await stage.settled()
  const settledMs = clock() - startedAt
  const cpuMs = total(difference(stage.cpu(), cpuBefore))
  const arrivals = await stage.takeArrivals()
  const { publishedPerSecond, tookMs, perSecond, lost, doubled, problems } = burstFigures(published, arrivals)
  const row = {
    events,
    publishedPerSecond,
    tookMs,
    perSecond,
    settledMs: rounded(settledMs),
    cpuMsEach: rounded(cpuMs / events),
    lost,
    doubled,
  }
  return { row, problems: [...problems, ...unsettled] }
}

function ratioTo(noops: readonly number[], perSecond: number): Row {
  if (noops.length === 0) return {}
  const mean = noops.reduce((sum, rate) => sum + rate, 0) / noops.length
  return { noopsPerSecond: noops.map(rounded).join(' and '), ratioToNoop: rounded(perSecond / mean) }
}

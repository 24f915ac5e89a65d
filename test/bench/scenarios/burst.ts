import { setTimeout as delay } from 'node:timers/promises'
import { START_CONCURRENCY } from '../../../src/process/dispatch.ts'
import { rounded } from '../measure/distribution.ts'
import { compareTurns, measureBurst, measureTurn } from '../measure/turns.ts'
import { runNoops } from '../noop/noop.ts'
import type { Bench, Findings, Scenario } from '../scenario.ts'
import { HOOK, type Stage } from '../stage.ts'

const EVENTS = 5_000
/** Workflow by workflow it takes ten times as long, and the rate is the same from start to end. */
const WORKFLOW_EVENTS = 1_500
const QUICK_EVENTS = 200
const ROUNDS = 3

/**
 * In turns with the smallest program that does the same. With FIRST_ATTEMPT=workflow once, next to Temporal's own rate on
 * the same server, before and after: workflows with one activity that does nothing, as many, started the same way.
 */
export const burst: Scenario = {
  letter: 'c',
  name: 'burst',
  title: 'events published as fast as they are acknowledged, until the last has arrived',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [HOOK] })
    const findings = await (bench.firstAttempt === 'workflow' ? besideNoops : besideFloor)(bench, stage)
    await stage.close()
    return findings
  },
}

async function besideFloor(bench: Bench, stage: Stage): Promise<Findings> {
  const findings: Findings = { rows: [], problems: [] }
  const events = bench.quick ? QUICK_EVENTS : EVENTS
  const floor = await bench.openFloor(HOOK.path)
  await measureTurn(bench, { stage, floor, events, round: 0 }, findings)
  const turns = []
  for (let round = 0; round < ROUNDS; round++) {
    await delay(bench.restMs)
    turns.push(await measureTurn(bench, { stage, floor, events, round }, findings))
  }
  await floor.close()
  findings.rows = compareTurns({ events }, turns)
  const bursts = turns.map(({ posthorn }) => ({ ...posthorn }))
  return { ...findings, details: { 'each burst of Posthorn': bursts } }
}

async function besideNoops(bench: Bench, stage: Stage): Promise<Findings> {
  const events = bench.quick ? QUICK_EVENTS : WORKFLOW_EVENTS
  /** Workflows per second, from the first start until the last has run, with a worker of their own. */
  const noop = async (): Promise<number> => {
    bench.say(`${events} workflows with an activity that does nothing`)
    const pace = { kind: 'closed', concurrency: START_CONCURRENCY } as const
    return (await runNoops(stage.engine.address, events, pace)).perSecond
  }
  const before = await noop()
  bench.say(`${events} events, 32 at once`)
  const { burst: measured, problems } = await measureBurst(stage, 'posthorn', events)
  // Its polls and its sweep would run during the second measurement of Temporal.
  await stage.stopPosthorn()
  const after = await noop()
  const noopsPerSecond = `${rounded(before)} and ${rounded(after)}`
  const ratioToNoop = rounded(measured.perSecond / ((before + after) / 2))
  return { rows: [{ events, ...measured, noopsPerSecond, ratioToNoop }], problems }
}

import type { Floor } from '../floor/floor.ts'
import { BURST, type Load } from '../load.ts'
import type { Bench, Findings, Row } from '../scenario.ts'
import { HOOK, type Stage } from '../stage.ts'
import { clock } from './clock.ts'
import { rounded } from './distribution.ts'
import { burstFigures, type BurstFigures } from './ledger.ts'
import { difference, total, untilQuiet } from './until-quiet.ts'

/**
 * From the first publish to the last arrival. `settledMs` is until all is recorded and, with `overflow`, every delivery
 * has the workflow that follows it; `cpuMsEach` the processor time until then of all but who publishes and receives, and
 * `programMsEach` that of the program alone.
 */
export type Burst = Omit<BurstFigures, 'problems'> & {
  settledMs: number
  cpuMsEach: number
  programMsEach: number
}

/** Both are idle before. */
export async function measureBurst(
  load: Load,
  program: 'posthorn' | 'floor',
  events: number,
): Promise<{ burst: Burst; problems: string[] }> {
  const cpuBefore = await untilQuiet(load)
  const published = await load.publish(HOOK.eventKey, { pace: BURST, limit: { events } })
  const startedAt = Math.min(...published.map(({ sentAt }) => sentAt))
  await load.arrived(HOOK.path, { deliveries: events })
  const unsettled = await load.settled()
  const settledMs = clock() - startedAt
  const cpu = difference(load.cpu(), cpuBefore)
  const { problems, ...figures } = burstFigures(published, await load.takeArrivals())
  const cpuMsEach = rounded(total(cpu) / events)
  const programMsEach = rounded((cpu[program] ?? 0) / events)
  const burst = { ...figures, settledMs: rounded(settledMs), cpuMsEach, programMsEach }
  return { burst, problems: [...problems, ...unsettled] }
}

/** One burst of Posthorn and one of the floor, in an order that changes from round to round. */
export async function measureTurn(
  { say }: Pick<Bench, 'say'>,
  { stage, floor, events, round }: { stage: Stage; floor: Floor; events: number; round: number },
  findings: Findings,
): Promise<Record<'posthorn' | 'floor', Burst>> {
  say(`${events} events, 32 at once, to Posthorn and to the floor`)
  const measure = async (load: Load, program: 'posthorn' | 'floor'): Promise<Burst> => {
    const { burst, problems } = await measureBurst(load, program, events)
    findings.problems.push(...problems.map((problem) => `${program}: ${problem}`))
    return burst
  }
  const ofFloor = round % 2 === 0 ? null : await measure(floor, 'floor')
  const posthorn = await measure(stage, 'posthorn')
  return { posthorn, floor: ofFloor ?? (await measure(floor, 'floor')) }
}

const COMPARED = ['perSecond', 'programMsEach', 'cpuMsEach'] as const

/** A row for each program, and one with their ratios: medians, with the smallest and the largest. */
export function compareTurns(label: Row, turns: readonly Record<'posthorn' | 'floor', Burst>[]): Row[] {
  const rowOf = (
    program: string,
    valueOf: (turn: (typeof turns)[number], name: (typeof COMPARED)[number]) => number,
  ): Row => ({
    ...label,
    program,
    ...Object.fromEntries(COMPARED.map((name) => [name, spread(turns.map((turn) => valueOf(turn, name)))])),
  })
  return [
    rowOf('posthorn', ({ posthorn }, name) => posthorn[name]),
    rowOf('floor', ({ floor }, name) => floor[name]),
    rowOf('ratio', ({ posthorn, floor }, name) => posthorn[name] / floor[name]),
  ]
}

function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b)
  const [least = NaN, median = NaN, most = NaN] = [0, sorted.length >> 1, sorted.length - 1].map(
    (at) => sorted[at],
  )
  return `${rounded(median)} (${rounded(least)} to ${rounded(most)})`
}

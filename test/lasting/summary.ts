import { rounded } from '../bench/measure/distribution.ts'
import type { Row } from '../bench/scenario.ts'
import { percentile } from '../helpers/percentile.ts'
import type { Disturbance } from './disturbances.ts'
import type { Sample } from './samples.ts'

/** A row for each stretch of the run between the disturbances that last; a median is that of the samples in it. */
export function summarise(
  samples: readonly Sample[],
  disturbances: readonly Disturbance[],
  durationMs: number,
): Row[] {
  return stretches(disturbances).map(({ name, from, to }) => {
    const within = samples.filter(({ at }) => at > from * durationMs && at <= to * durationMs)
    const of = (value: (sample: Sample) => number | null): number[] =>
      within.map(value).filter((found) => found !== null)
    const median = (value: (sample: Sample) => number | null): number => rounded(percentile(of(value), 0.5))
    const most = (value: (sample: Sample) => number | null): number => rounded(Math.max(...of(value)))
    const minute = (share: number): number => rounded((share * durationMs) / 60_000)
    return {
      minutes: `${minute(from)} to ${minute(to)}`,
      stretch: name,
      confirmedPerSecond: median(({ confirmedPerSecond }) => confirmedPerSecond),
      p50Ms: median(({ p50 }) => p50),
      p99Ms: median(({ p99 }) => p99),
      worstMs: most(({ max }) => max),
      mostDeadRows: most(({ deadRows }) => deadRows),
      tablesMib: most(({ tablesMib }) => tablesMib),
      mostMemoryMib: most(({ memoryMib }) => memoryMib),
    }
  })
}

/** What lasts, and what lies between: alone at the beginning and the end, kills and restarts otherwise. */
function stretches(disturbances: readonly Disturbance[]): Pick<Disturbance, 'name' | 'from' | 'to'>[] {
  const lasting = disturbances.filter(({ from, to }) => to > from)
  const instants = disturbances.filter(({ from, to }) => to === from).map(({ from }) => from)
  const edges = [
    ...new Set([
      0,
      Math.min(...instants),
      ...lasting.flatMap(({ from, to }) => [from, to]),
      Math.max(...instants),
      1,
    ]),
  ]
  return edges.slice(1).map((to, index) => {
    const from = edges[index]!
    const name = lasting.find((disturbance) => disturbance.from === from)?.name
    const between = instants.some((instant) => instant > from && instant < to)
      ? 'kills and restarts'
      : 'alone'
    return { name: name ?? between, from, to }
  })
}

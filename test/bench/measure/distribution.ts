import { percentile } from '../../helpers/percentile.ts'
import type { Findings, Measured } from '../scenario.ts'

export type Distribution = { p50: number; p99: number; max: number }

/** Median, 99th percentile and maximum, rounded to what a reader can use. */
export function distribution(values: readonly number[]): Distribution {
  return {
    p50: rounded(percentile(values, 0.5)),
    p99: rounded(percentile(values, 0.99)),
    max: rounded(Math.max(...values)),
  }
}

/** Three significant digits below 1,000, none after the point above. */
export function rounded(value: number): number {
  return Math.abs(value) >= 1_000 ? Math.round(value) : Number(value.toPrecision(3))
}

/** As columns of a row: `p50Ms`, `p99Ms` and `maxMs`, with a prefix if one is given. */
export function columns(values: readonly number[], prefix = ''): Record<string, number> {
  const { p50, p99, max } = distribution(values)
  const name = (text: string): string =>
    prefix === '' ? text : `${prefix}${text[0]!.toUpperCase()}${text.slice(1)}`
  return { [name('p50Ms')]: p50, [name('p99Ms')]: p99, [name('maxMs')]: max }
}

/** Two measurements, the second with `p99Ratio`: how many times the p99 of the first it is. */
export function compared(first: Measured, second: Measured): Findings {
  const p99Ratio = rounded(Number(second.row['p99Ms']) / Number(first.row['p99Ms']))
  return {
    rows: [first.row, { ...second.row, p99Ratio }],
    problems: [...first.problems, ...second.problems],
  }
}

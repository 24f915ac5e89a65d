import { DARK, drawPanels, GREEN, LIGHT, round, text, type Panel } from '../helpers/picture.ts'
import type { Disturbance } from './disturbances.ts'
import type { Sample } from './samples.ts'

const PANELS: readonly Panel<Sample>[] = [
  {
    title: 'per second',
    series: [
      { name: 'events accepted', colour: LIGHT, value: ({ acceptedPerSecond }) => acceptedPerSecond },
      { name: 'deliveries confirmed', colour: DARK, value: ({ confirmedPerSecond }) => confirmedPerSecond },
    ],
  },
  {
    title: 'publish to POST, ms, logarithmic',
    isLogarithmic: true,
    series: [
      { name: 'p99', colour: LIGHT, value: ({ p99 }) => p99 },
      { name: 'p50', colour: DARK, value: ({ p50 }) => p50 },
    ],
  },
  {
    title: 'dead rows, thousands',
    series: [
      {
        name: 'of three tables',
        colour: DARK,
        value: ({ deadRows }) => (deadRows === null ? null : deadRows / 1_000),
      },
    ],
  },
  {
    title: 'tables with indexes, MiB',
    series: [{ name: 'of three tables', colour: DARK, value: ({ tablesMib }) => tablesMib }],
  },
  {
    title: 'resident memory, MiB',
    series: [{ name: 'the larger process', colour: DARK, value: ({ memoryMib }) => memoryMib }],
  },
]

/** Of instants. */
const COLOURS: Record<string, string> = {
  'process killed': '#c8c8c8',
  'PostgreSQL restarted': '#b03030',
  'Temporal restarted': GREEN,
}

const TOP = 76
const TICKS = 8
const MS_PER_MINUTE = 60_000

/** Samples of a run of `durationMs` as an SVG picture, one panel above the other, with what was done meanwhile. */
export function drawPicture(
  samples: readonly Sample[],
  disturbances: readonly Disturbance[],
  durationMs: number,
): string {
  const legend = (left: number): string[] =>
    Object.entries(COLOURS).map(([name, colour], index) => {
      const from = left + index * 170
      return `<line x1="${from}" x2="${from + 14}" y1="22" y2="22" stroke="${colour}" stroke-width="2"/>${text(from + 20, 26, name)}`
    })
  const marks = (x: (share: number) => number, top: number, bottom: number): string[] =>
    disturbances.map(({ name, from, to }) => {
      const [left, right] = [x(from), x(to)]
      if (right > left)
        return `<rect x="${round(left)}" y="${top}" width="${round(right - left)}" height="${bottom - top}" fill="#f0e3c8"/>${text(left + 4, top - 28, name)}`
      return `<line x1="${round(left)}" x2="${round(left)}" y1="${top}" y2="${bottom}" stroke="${COLOURS[name] ?? DARK}"/>`
    })
  const ticks = Array.from({ length: TICKS + 1 }, (_, index) => index / TICKS).map((share) => ({
    share,
    label: String(round((share * durationMs) / MS_PER_MINUTE)),
  }))
  const shareOf = ({ at }: Sample): number => Math.min(at, durationMs) / durationMs
  return drawPanels(
    'Load that lasts',
    PANELS,
    samples,
    { shareOf, ticks, label: 'minutes' },
    {
      top: TOP,
      backdrop: (x, top, bottom) => [...legend(x(0)), ...marks(x, top, bottom)],
    },
  )
}

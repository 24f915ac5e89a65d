import type { Disturbance } from './disturbances.ts'
import type { Sample } from './samples.ts'

type Series = { name: string; colour: string; value: (sample: Sample) => number | null }
type Panel = { title: string; series: Series[]; isLogarithmic?: boolean }

const DARK = '#1f4e79'
const LIGHT = '#d9822b'

const PANELS: readonly Panel[] = [
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
  'Temporal restarted': '#3a8a3a',
}

const WIDTH = 960
const LEFT = 60
const RIGHT = 16
const TOP = 76
const PANEL_HEIGHT = 104
const PANEL_GAP = 40
const TICKS = 8
const MS_PER_MINUTE = 60_000

/** Samples of a run of `durationMs` as an SVG picture, one panel above the other, with what was done meanwhile. */
export function drawPicture(
  samples: readonly Sample[],
  disturbances: readonly Disturbance[],
  durationMs: number,
): string {
  const bottom = TOP + PANELS.length * (PANEL_HEIGHT + PANEL_GAP) - PANEL_GAP
  const x = (ms: number): number => LEFT + (Math.min(ms, durationMs) / durationMs) * (WIDTH - LEFT - RIGHT)
  const marks = disturbances.map(({ name, from, to }) => {
    const [left, right] = [x(from * durationMs), x(to * durationMs)]
    if (right > left)
      return `<rect x="${round(left)}" y="${TOP}" width="${round(right - left)}" height="${bottom - TOP}" fill="#f0e3c8"/>${text(left + 4, TOP - 28, name)}`
    return `<line x1="${round(left)}" x2="${round(left)}" y1="${TOP}" y2="${bottom}" stroke="${COLOURS[name] ?? DARK}"/>`
  })
  const legend = Object.entries(COLOURS).map(([name, colour], index) => {
    const from = LEFT + index * 170
    return `<line x1="${from}" x2="${from + 14}" y1="22" y2="22" stroke="${colour}" stroke-width="2"/>${text(from + 20, 26, name)}`
  })
  const panels = PANELS.map((panel, index) =>
    drawPanel(panel, samples, x, TOP + index * (PANEL_HEIGHT + PANEL_GAP)),
  )
  const minutes = durationMs / MS_PER_MINUTE
  const ticks = Array.from({ length: TICKS + 1 }, (_, index) => (minutes * index) / TICKS).map((minute) =>
    text(x(minute * MS_PER_MINUTE), bottom + 18, String(round(minute)), 'middle'),
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 44}" font-family="sans-serif" font-size="12">`,
    `<title>Load that lasts</title>`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    ...legend,
    ...marks,
    ...panels,
    ...ticks,
    text(WIDTH - RIGHT, bottom + 36, 'minutes', 'end'),
    '</svg>',
    '',
  ].join('\n')
}

function drawPanel(panel: Panel, samples: readonly Sample[], x: (ms: number) => number, top: number): string {
  const { title, series, isLogarithmic = false } = panel
  const values = series.flatMap(({ value }) => samples.map(value)).filter((value) => value !== null)
  const most = niceMaximum(Math.max(...values, 1), isLogarithmic)
  const share = (value: number): number =>
    isLogarithmic ? Math.log10(Math.max(value, 1)) / Math.log10(most) : value / most
  const y = (value: number): number => top + PANEL_HEIGHT - share(value) * PANEL_HEIGHT
  const levels = isLogarithmic
    ? Array.from({ length: Math.log10(most) + 1 }, (_, power) => 10 ** power)
    : [0, most / 2, most]
  const grid = levels.map(
    (level) =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(y(level))}" y2="${round(y(level))}" stroke="#dddddd"/>` +
      text(LEFT - 6, y(level) + 4, level.toLocaleString('en'), 'end'),
  )
  const lines = series.map(
    ({ colour, value }) =>
      `<path d="${pathOf(samples, value, x, y)}" fill="none" stroke="${colour}" stroke-width="1.4"/>`,
  )
  const legend = series.map(
    ({ name, colour }, index) =>
      `<rect x="${LEFT + 250 + index * 170}" y="${top - 17}" width="10" height="10" fill="${colour}"/>` +
      text(LEFT + 264 + index * 170, top - 8, name),
  )
  return [...grid, ...lines, text(LEFT, top - 8, title), ...legend].join('\n')
}

/** A line with gaps where there is no value. */
function pathOf(
  samples: readonly Sample[],
  value: Series['value'],
  x: (ms: number) => number,
  y: (value: number) => number,
): string {
  let isDrawing = false
  return samples
    .map((sample) => {
      const found = value(sample)
      const command = isDrawing ? 'L' : 'M'
      isDrawing = found !== null
      return found === null ? '' : `${command}${round(x(sample.at))} ${round(y(found))}`
    })
    .join('')
}

function niceMaximum(value: number, isLogarithmic: boolean): number {
  const power = 10 ** Math.floor(Math.log10(value))
  if (isLogarithmic) return power * 10
  return [1, 2, 4, 5, 8, 10].map((factor) => factor * power).find((candidate) => candidate >= value)!
}

function text(x: number, y: number, content: string, anchor = 'start'): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" fill="#333333">${content}</text>`
}

const round = (value: number): number => Math.round(value * 10) / 10

/** What is drawn of each point: a line for each series, with a gap where it has no value. */
export type Panel<Point> = {
  title: string
  series: { name: string; colour: string; value: (point: Point) => number | null }[]
  isLogarithmic?: boolean
}

/** The axis that all panels share. Shares are from 0, its left end, to 1. */
type Axis<Point> = {
  shareOf: (point: Point) => number
  ticks: { share: number; label: string }[]
  label: string
}

/** What is drawn behind the panels, which reach from `top` to `bottom`, and above them. */
type Backdrop = (x: (share: number) => number, top: number, bottom: number) => string[]

export const DARK = '#1f4e79'
export const LIGHT = '#d9822b'
export const GREEN = '#3a8a3a'
export const VIOLET = '#8a4fa0'

const WIDTH = 960
const LEFT = 60
const RIGHT = 16
const PANEL_HEIGHT = 104
const PANEL_GAP = 40

/** Panels one above the other as an SVG picture. `top` leaves room for what the backdrop draws there. */
export function drawPanels<Point>(
  title: string,
  panels: readonly Panel<Point>[],
  points: readonly Point[],
  { shareOf, ticks, label }: Axis<Point>,
  { top = PANEL_GAP, backdrop = () => [] }: { top?: number; backdrop?: Backdrop } = {},
): string {
  const bottom = top + panels.length * (PANEL_HEIGHT + PANEL_GAP) - PANEL_GAP
  const x = (share: number): number => LEFT + share * (WIDTH - LEFT - RIGHT)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 44}" font-family="sans-serif" font-size="12">`,
    `<title>${title}</title>`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    ...backdrop(x, top, bottom),
    ...panels.map((panel, index) =>
      drawPanel(panel, points, (point) => x(shareOf(point)), top + index * (PANEL_HEIGHT + PANEL_GAP)),
    ),
    ...ticks.map((tick) => text(x(tick.share), bottom + 18, tick.label, 'middle')),
    text(WIDTH - RIGHT, bottom + 36, label, 'end'),
    '</svg>',
    '',
  ].join('\n')
}

function drawPanel<Point>(
  { title, series, isLogarithmic = false }: Panel<Point>,
  points: readonly Point[],
  x: (point: Point) => number,
  top: number,
): string {
  const values = series.flatMap(({ value }) => points.map(value)).filter((value) => value !== null)
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
      `<path d="${pathOf(points, value, x, y)}" fill="none" stroke="${colour}" stroke-width="1.4"/>`,
  )
  const legend = series.map(
    ({ name, colour }, index) =>
      `<rect x="${LEFT + 250 + index * 170}" y="${top - 17}" width="10" height="10" fill="${colour}"/>` +
      text(LEFT + 264 + index * 170, top - 8, name),
  )
  return [...grid, ...lines, text(LEFT, top - 8, title), ...legend].join('\n')
}

/** A line with gaps where there is no value. */
function pathOf<Point>(
  points: readonly Point[],
  value: (point: Point) => number | null,
  x: (point: Point) => number,
  y: (value: number) => number,
): string {
  let isDrawing = false
  return points
    .map((point) => {
      const found = value(point)
      const command = isDrawing ? 'L' : 'M'
      isDrawing = found !== null
      return found === null ? '' : `${command}${round(x(point))} ${round(y(found))}`
    })
    .join('')
}

function niceMaximum(value: number, isLogarithmic: boolean): number {
  const power = 10 ** Math.floor(Math.log10(value))
  if (isLogarithmic) return power * 10
  return [1, 2, 4, 5, 8, 10].map((factor) => factor * power).find((candidate) => candidate >= value)!
}

export function text(x: number, y: number, content: string, anchor = 'start'): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" fill="#333333">${content}</text>`
}

export const round = (value: number): number => Math.round(value * 10) / 10

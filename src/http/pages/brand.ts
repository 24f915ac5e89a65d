import { escapeHtml } from '../../domain/text-rules.ts'
import { contentPath } from './bundle-pages.ts'

/**
 * How the pages present themselves. `accentColor`: `#rrggbb`, or '' for the product's own. `logo`: null for the product's
 * own; `extension` is that of its format.
 */
export type Brand = {
  name: string
  accentColor: string
  logo: { body: Buffer; extension: 'svg' | 'png' } | null
}

/** What the files of the pages have. */
export const OWN_BRAND: Brand = { name: 'Posthorn', accentColor: '', logo: null }

type Files = ReadonlyMap<string, Buffer>

/** Of text (WCAG 2.2, 1.4.3). */
const MIN_CONTRAST = 4.5

/** The rule of the stylesheet that has the colours of a theme, and the channel value of the text that is clearest there. */
const THEMES = [
  { rule: /^:root \{[^}]*\}/m, clearest: 0 },
  { rule: /^:root\[data-theme='dark'\] \{[^}]*\}/m, clearest: 255 },
]
const BACKGROUND = /--(?:back|card|sunk|\w+-back): (#\w+);/g
const ACCENT = /(?<=--accent: )#\w+/

/**
 * Returns the files of the pages with the name, the logo and the accent colour of a brand. What is named after its
 * content gets a new path with its new content.
 */
export function withBrand(files: Files, { name, accentColor, logo }: Brand): Files {
  const branded = new Map(files)
  const changes: (readonly [text: string, replacement: string])[] = []
  if (accentColor !== '')
    for (const [path, body] of files) {
      const [, page] = /^bundled\/(.+)-.{16}\.css$/.exec(path) ?? []
      if (page === undefined) continue
      const style = Buffer.from(withAccent(body.toString(), accentColor))
      branded.delete(path)
      branded.set(contentPath(page, style, 'css'), style)
      changes.push([path, contentPath(page, style, 'css')])
    }
  if (logo !== null) {
    const path = contentPath('logo', logo.body, logo.extension)
    branded.set(path, logo.body)
    changes.push(['/assets/icon.svg', `/assets/${path}`])
    if (logo.extension === 'png') changes.push(['image/svg+xml', 'image/png'])
  }
  // Last: nothing is replaced inside of it.
  changes.push([OWN_BRAND.name, escapeHtml(name)])
  for (const [path, body] of branded)
    if (path.endsWith('.html') || path === 'app/push-worker.js') {
      const text = changes.reduce((text, [from, to]) => text.replaceAll(from, () => to), body.toString())
      branded.set(path, Buffer.from(text))
    }
  return branded
}

/** Each theme has the colour itself, or the nearest shade of it that is legible on every background of the theme. */
function withAccent(style: string, color: string): string {
  return THEMES.reduce(
    (text, { rule, clearest }) =>
      text.replace(rule, (colors) => {
        const backgrounds = [...colors.matchAll(BACKGROUND)].map(([, background = '']) => background)
        return colors.replace(ACCENT, legibleShade(color, backgrounds, clearest))
      }),
    style,
  )
}

function legibleShade(color: string, backgrounds: readonly string[], clearest: number): string {
  for (let percent = 0; ; percent++) {
    const channels = channelsOf(color).map((channel) => channel + ((clearest - channel) * percent) / 100)
    const shade = `#${channels.map((channel) => Math.round(channel).toString(16).padStart(2, '0')).join('')}`
    if (percent === 100 || backgrounds.every((background) => contrast(shade, background) >= MIN_CONTRAST))
      return shade
  }
}

/** Returns the contrast ratio of two colours in hexadecimal, from 1 to 21 (WCAG 2.2). */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(color).map((channel) => {
    const share = channel / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** Also of the short form, such as `#fff`. */
function channelsOf(color: string): number[] {
  const digits = color.slice(1)
  const length = digits.length / 3
  return [0, 1, 2].map((index) => {
    const channel = digits.slice(index * length, (index + 1) * length)
    return parseInt(channel.padEnd(2, channel), 16)
  })
}

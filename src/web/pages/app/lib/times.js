import { html } from './html.js'

/** @import { Template } from '../types.d.ts' */

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** What is due begins within this time, unless it has to wait for something. */
const OVERDUE_AFTER = 15 * SECOND_MS

/**
 * Formats times in the browser's locale and the organisation's zone, with the exact instant in UTC in the tooltip.
 * @param {string} timeZone
 */
export function createTimes(timeZone) {
  const toTheSecond = /** @type {const} */ ({
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  })
  const ofThisYear = formatter(undefined, timeZone, toTheSecond)
  const ofAnother = formatter(undefined, timeZone, { ...toTheSecond, year: 'numeric' })
  /** The text itself where it is no time, as in a damaged link. @param {string} iso */
  const inFull = (iso) => {
    const date = new Date(iso)
    if (Number.isNaN(date.getTime())) return iso
    const isThisYear = date.getUTCFullYear() === new Date().getUTCFullYear()
    return (isThisYear ? ofThisYear : ofAnother).format(date)
  }
  const hour = formatter(undefined, timeZone, { hour: '2-digit', minute: '2-digit' })
  const clock = formatter(undefined, timeZone, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
  const day = formatter(undefined, timeZone, { day: 'numeric', month: 'short' })
  const dayAndHour = formatter(undefined, timeZone, { ...toTheSecond, second: undefined })

  /**
   * @param {string} iso
   * @param {string} text
   */
  const element = (iso, text) => html`<time datetime=${iso} title=${utc(iso)}>${text}</time>`

  return {
    timeZone,
    /**
     * `14 Mar, 09:26:53`, with the year unless it is this one
     * @param {string} iso
     * @returns {Template}
     */
    at: (iso) => element(iso, inFull(iso)),
    /**
     * `5 minutes ago`, and the time itself beyond a day.
     * @param {string} iso
     * @returns {Template}
     */
    ago(iso) {
      const age = Date.now() - Date.parse(iso)
      return element(iso, age > DAY_MS ? inFull(iso) : agoInWords(age))
    },
    /**
     * `in 4:59`, to the second; `overdue for 3 minutes` after it.
     * @param {string} iso
     * @returns {Template}
     */
    until(iso) {
      const left = Date.parse(iso) - Date.now()
      if (left > 0) return element(iso, `in ${countdown(left)}`)
      return element(iso, isOverdue(iso) ? `overdue for ${duration(-left)}` : 'now')
    },
    /**
     * `09:26`, and `14 Mar` beyond a day.
     * @param {string} iso
     * @returns {Template}
     */
    short: (iso) => element(iso, (Date.now() - Date.parse(iso) > DAY_MS ? day : hour).format(new Date(iso))),
    /**
     * `10:02:11`
     * @param {number} ms
     */
    clock: (ms) => clock.format(ms),
    /**
     * `09:00`
     * @param {string} iso
     */
    hour: (iso) => hour.format(new Date(iso)),
    /**
     * `14 Mar, 09:00`
     * @param {string} iso
     */
    dayAndHour: (iso) => dayAndHour.format(new Date(iso)),
  }
}

/** @param {string} iso */
function utc(iso) {
  return `${iso.replace('T', ' ').replace('Z', '')} UTC`
}

/** @param {string} iso */
export function isOverdue(iso) {
  return Date.now() - Date.parse(iso) >= OVERDUE_AFTER
}

/** @param {number} ms */
function agoInWords(ms) {
  if (ms < 5 * SECOND_MS) return 'just now'
  return `${duration(ms)} ago`
}

/**
 * `3 hours`, rounded down to its largest unit; a single day in hours, as the schedule has it.
 * @param {number} ms
 */
export function duration(ms) {
  for (const [unit, name] of /** @type {const} */ ([
    [DAY_MS, 'day'],
    [HOUR_MS, 'hour'],
    [MINUTE_MS, 'minute'],
  ])) {
    const count = Math.floor(ms / unit)
    if (count > (unit === DAY_MS ? 1 : 0)) return plural(count, name)
  }
  return plural(Math.max(0, Math.floor(ms / SECOND_MS)), 'second')
}

/**
 * `1:04:59`
 * @param {number} ms
 */
function countdown(ms) {
  const seconds = Math.ceil(ms / SECOND_MS)
  const parts = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60), seconds % 60]
  const shown = parts[0] === 0 ? parts.slice(1) : parts
  return shown.map((part, index) => (index === 0 ? String(part) : String(part).padStart(2, '0'))).join(':')
}

/**
 * `240 ms`, `1.2 s`, `9 minutes`
 * @param {number} ms
 */
export function milliseconds(ms) {
  if (ms >= MINUTE_MS) return duration(ms)
  if (ms < SECOND_MS) return `${String(ms)} ms`
  const digits = ms < 10 * SECOND_MS ? 1 : 0
  const seconds = { minimumFractionDigits: digits, maximumFractionDigits: digits }
  return `${(ms / SECOND_MS).toLocaleString(undefined, seconds)} s`
}

/**
 * `97 %`, `99.4 %`: never 0 or 100 unless it is exactly that.
 * @param {number} part
 * @param {number} whole
 */
export function share(part, whole) {
  const percent = (100 * part) / whole
  const isEdge = part === 0 || part === whole || (percent >= 1 && percent <= 99)
  if (isEdge) return `${String(Math.round(percent))} %`
  return `${String(Math.min(99.9, Math.max(0.1, Math.round(percent * 10) / 10)))} %`
}

/**
 * `1 delivery`, `2 deliveries`, `2 days`
 * @param {number} count
 * @param {string} noun
 */
export function plural(count, noun) {
  const words = count === 1 ? noun : `${noun.replace(/(?<!a)y$/, 'ie')}s`
  return `${count.toLocaleString()} ${words}`
}

/**
 * The wall clock of an instant in a zone, as an input of the type `datetime-local` has it: `2026-05-04T11:02`; empty for
 * what is no time.
 * @param {string} iso
 * @param {string} timeZone
 */
export function toLocalTime(iso, timeZone) {
  return isoOf(wallClock(Date.parse(iso), timeZone)).slice(0, 16)
}

/**
 * The instant at which the zone's wall clock shows this; empty for what is no time.
 * @param {string} local
 * @param {string} timeZone
 */
export function toInstant(local, timeZone) {
  const wanted = Date.parse(`${local}Z`)
  let ms = wanted
  // Twice: the first guess may lie on the other side of a change of the clock.
  for (let round = 0; round < 2; round++) ms = wanted - (wallClock(ms, timeZone) - ms)
  return isoOf(ms)
}

/** The years that have four digits. */
const MIN_MS = Date.parse('0001-01-01T00:00Z')
const MAX_MS = Date.parse('9999-12-31T23:59:59.999Z')
const isInRange = (/** @type {number} */ ms) => ms >= MIN_MS && ms <= MAX_MS

/** @param {number} ms */
function isoOf(ms) {
  return isInRange(ms) ? new Date(ms).toISOString() : ''
}

/**
 * Unix ms at which UTC shows what the zone shows at `ms`, in whole seconds; NaN for a year that has not four digits.
 * @param {number} ms
 * @param {string} timeZone
 */
function wallClock(ms, timeZone) {
  if (!isInRange(ms)) return NaN
  const [number, two] = /** @type {const} */ (['numeric', '2-digit'])
  /** @type {Intl.DateTimeFormatOptions} */
  const form = { year: number, month: two, day: two, hour: two, minute: two, second: two, hourCycle: 'h23' }
  const fields = Object.fromEntries(
    formatter('en', timeZone, form)
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  )
  const { year = '', month, day, hour, minute, second } = fields
  return Date.parse(`${year.padStart(4, '0')}-${month}-${day}T${hour}:${minute}:${second}Z`) + (ms % 1_000)
}

/**
 * @param {string | undefined} locale the browser's where none is given
 * @param {string} timeZone
 * @param {Intl.DateTimeFormatOptions} form
 */
function formatter(locale, timeZone, form) {
  try {
    return new Intl.DateTimeFormat(locale, { ...form, timeZone })
  } catch {
    // A zone that the server knows and this browser does not.
    return new Intl.DateTimeFormat(locale, { ...form, timeZone: 'UTC' })
  }
}

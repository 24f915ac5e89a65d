/**
 * The wall clock of an instant in a zone, as an input of the type `datetime-local` has it: `2026-05-04T11:02`.
 * @param {string} iso
 * @param {string} timeZone
 */
export function toLocalTime(iso, timeZone) {
  const ms = Date.parse(iso)
  return Number.isNaN(ms) ? '' : new Date(wallClock(ms, timeZone)).toISOString().slice(0, 16)
}

/**
 * The instant at which the zone's wall clock shows this; empty for what is no time.
 * @param {string} local
 * @param {string} timeZone
 */
export function toInstant(local, timeZone) {
  const wanted = Date.parse(`${local}Z`)
  if (Number.isNaN(wanted)) return ''
  let ms = wanted
  // Twice: the first guess may lie on the other side of a change of the clock.
  for (let round = 0; round < 2; round++) ms = wanted - (wallClock(ms, timeZone) - ms)
  return new Date(ms).toISOString()
}

/**
 * Unix ms at which UTC shows what the zone shows at `ms`, in whole seconds.
 * @param {number} ms
 * @param {string} timeZone
 */
function wallClock(ms, timeZone) {
  const [number, two] = /** @type {const} */ (['numeric', '2-digit'])
  /** @type {Intl.DateTimeFormatOptions} */
  const form = { year: number, month: two, day: two, hour: two, minute: two, second: two, hourCycle: 'h23' }
  const fields = Object.fromEntries(
    formatter('en', timeZone, form)
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  )
  const { year, month, day, hour, minute, second } = fields
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`) + (ms % 1_000)
}

/**
 * @param {string | undefined} locale the browser's where none is given
 * @param {string} timeZone
 * @param {Intl.DateTimeFormatOptions} form
 */
export function formatter(locale, timeZone, form) {
  try {
    return new Intl.DateTimeFormat(locale, { ...form, timeZone })
  } catch {
    // A zone that the server knows and this browser does not.
    return new Intl.DateTimeFormat(locale, { ...form, timeZone: 'UTC' })
  }
}

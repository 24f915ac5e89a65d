/**
 * Milliseconds of the machine's monotonic clock, with fractions. It is one clock for all processes and is never set,
 * so that what the generator noted can be subtracted from what the receiver noted.
 */
export function clock(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

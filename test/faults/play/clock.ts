/** Unix time in ms with fractions, which no step of the wall clock disturbs. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now()
}

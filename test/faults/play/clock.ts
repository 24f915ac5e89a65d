/** Unix time in ms with fractions, which no step of the wall clock disturbs. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now()
}

/** Prints what begins, so that the output shows where a play hangs. */
export function say(what: string): void {
  process.stdout.write(`      ${new Date().toISOString()} ${what}\n`)
}

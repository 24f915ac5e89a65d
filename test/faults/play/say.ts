/** Prints the phase that begins, so that the output shows where a play hangs. */
export function say(what: string): void {
  process.stdout.write(`      ${new Date().toISOString()} ${what}\n`)
}

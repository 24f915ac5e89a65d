import type { PlayRecord } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'processes stay sound'
const MAX_MEMORY_MB = 800

/** Log events of faults of Posthorn, and Node.js's own words for errors that nothing handled. */
const UNEXPECTED =
  /"event":"(http\.failed|http\.limiter_failed|metrics\.scrape_failed|stream\.failed|process\.(uncaught|unhandled)_\w+)"|^(?!\{).*(unhandled|uncaught)/i

/** No process ended by itself, logged a fault of Posthorn, or grew beyond a bound. */
export function checkProcesses({ processes }: PlayRecord): Violation[] {
  return processes.flatMap(({ name, log, endedByItself, peakMemoryMb }) => {
    const problems: string[] = []
    if (endedByItself.length > 0)
      problems.push(`ended by itself ${endedByItself.length} times:\n${tailOf(log)}`)
    if (peakMemoryMb > MAX_MEMORY_MB) problems.push(`took ${Math.round(peakMemoryMb)} MB`)
    const lines = log.split('\n').filter((line) => UNEXPECTED.test(line))
    if (lines.length > 0) problems.push(`logged ${lines.length} faults, the first: ${lines[0]}`)
    return problems.map((detail) => ({ rule: RULE, deliveryId: null, detail: `${name} ${detail}` }))
  })
}

function tailOf(log: string): string {
  return log.trimEnd().split('\n').slice(-10).join('\n')
}

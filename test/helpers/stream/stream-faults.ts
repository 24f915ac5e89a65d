import type { HistoricEvent } from './event-history.ts'

/**
 * Compares what was committed with what one client received, and returns what is wrong: a visible event that it neither
 * received nor has a gap for, one that came twice, out of order, or that it may not see. `since`: how many events had been
 * begun when the client first had a position.
 */
export function streamFaults(
  events: readonly HistoricEvent[],
  keys: ReadonlySet<string>,
  { received, since }: { received: readonly string[]; since: number },
): string[] {
  const byId = new Map(events.map((event) => [event.id, event]))
  const faults: string[] = []
  const seen = new Set<string>()
  let newest = -Infinity
  // The sequence numbers that a gap stands for: from the event before it to the event after it.
  const gaps: { after: number; before: number }[] = []
  for (const id of received) {
    if (id === 'gap') {
      gaps.push({ after: newest, before: Infinity })
      continue
    }
    const event = byId.get(id)
    if (event?.state !== 'committed' || !keys.has(event.key)) faults.push(`${id} was not to be sent`)
    if (seen.has(id)) faults.push(`${id} came twice`)
    const sequence = event?.sequence ?? newest
    if (sequence < newest) faults.push(`${id} came out of order`)
    for (const gap of gaps) if (gap.before === Infinity) gap.before = sequence
    seen.add(id)
    newest = Math.max(newest, sequence)
  }
  const isInGap = ({ sequence }: HistoricEvent) =>
    gaps.some(({ after, before }) => sequence > after && sequence < before)
  for (const event of events.slice(since)) {
    if (event.state !== 'committed' || !keys.has(event.key) || seen.has(event.id) || isInGap(event)) continue
    faults.push(`${event.id} (${event.key}, number ${event.sequence}) is lost`)
  }
  return faults
}

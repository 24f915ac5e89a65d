import { checkAcknowledged } from './checks/acknowledged.ts'
import { checkAttempts } from './checks/attempts.ts'
import { checkIncidents } from './checks/incidents.ts'
import { checkLateness } from './checks/lateness.ts'
import { checkNotifications } from './checks/notifications.ts'
import { checkReceivers } from './checks/receivers.ts'
import { checkRequests, checkRetries, checkStreams } from './checks/requests.ts'
import { checkUnfinished } from './checks/unfinished.ts'
import type { PlayRecord, Violation } from './record.ts'

const MAX_MEMORY_MB = 800

/** Every promise that the record of a play shows broken. */
export async function checkRecord(record: PlayRecord): Promise<Violation[]> {
  return [
    ...checkAcknowledged(record),
    ...checkAttempts(record),
    ...(await checkReceivers(record)),
    ...checkRequests(record),
    ...checkRetries(record),
    ...checkStreams(record),
    ...checkLateness(record),
    ...checkIncidents(record),
    ...checkNotifications(record),
    ...checkProcesses(record),
    ...checkUnfinished(record),
  ]
}

/** No process ended by itself, logged a fault of Posthorn, or grew beyond a bound. */
function checkProcesses({ processes }: PlayRecord): Violation[] {
  return processes.flatMap(({ name, log, faults, endedByItself, peakMemoryMb }) => {
    const problems: string[] = []
    if (endedByItself.length > 0)
      problems.push(
        `ended by itself ${endedByItself.length} times:\n${log.trimEnd().split('\n').slice(-10).join('\n')}`,
      )
    if (peakMemoryMb > MAX_MEMORY_MB) problems.push(`took ${Math.round(peakMemoryMb)} MB`)
    if (faults.length > 0) problems.push(`logged ${faults.length} faults, the first: ${faults[0]}`)
    return problems.map((detail) => ({
      rule: 'processes stay sound',
      deliveryId: null,
      detail: `${name} ${detail}`,
    }))
  })
}

import { checkAcknowledged } from './checks/acknowledged.ts'
import { checkAnswers } from './checks/answers.ts'
import { checkConfirmed } from './checks/confirmed.ts'
import { checkDuplicates } from './checks/duplicates.ts'
import { checkIdentity } from './checks/identity.ts'
import { checkIncidents } from './checks/incidents.ts'
import { checkNotifications } from './checks/notifications.ts'
import { checkProcesses } from './checks/processes.ts'
import { checkRetries } from './checks/retries.ts'
import { checkSchedule } from './checks/schedule.ts'
import { checkSettled } from './checks/settled.ts'
import { checkSwitchedOff } from './checks/switched-off.ts'
import type { PlayRecord } from './record.ts'
import type { Violation } from './violation.ts'

/** Every promise that the record of a play shows broken. */
export async function checkRecord(record: PlayRecord): Promise<Violation[]> {
  return [
    ...checkAcknowledged(record),
    ...checkAnswers(record),
    ...checkConfirmed(record),
    ...checkDuplicates(record),
    ...checkSchedule(record),
    ...(await checkIdentity(record)),
    ...checkSwitchedOff(record),
    ...checkRetries(record),
    ...checkIncidents(record),
    ...checkNotifications(record),
    ...checkProcesses(record),
    ...checkSettled(record),
  ]
}

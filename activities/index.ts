import type { AttemptDependencies } from '../src/deliveries/attempt/attempt-request.ts'
import type { RetryJobDependencies } from '../src/deliveries/retry/advance-retry-job.ts'
import { createRequestRetry } from './request-retry.ts'
import type { Shutdown } from '../src/shutdown.ts'
import type { SendDependencies } from '../src/incidents/notifications/send-due.ts'
import type { PurgeDependencies } from '../src/retention/purge.ts'
import { createUpdateIncident } from './update-incident.ts'
import { createMakeAttempt } from './make-attempt.ts'
import type { EraseDependencies } from '../src/accounts/erase-organisation.ts'
import { createEraseOrganisation } from './erase-organisation.ts'
import { createPurge } from './purge.ts'
import { createAdvanceRetryJob } from './advance-retry-job.ts'

export type ActivityDependencies = AttemptDependencies &
  RetryJobDependencies &
  PurgeDependencies &
  EraseDependencies &
  SendDependencies & { shutdown: Pick<Shutdown, 'stopping'> }

/** Builds the activities of a worker. */
export function createActivities(dependencies: ActivityDependencies) {
  return {
    makeAttempt: createMakeAttempt(dependencies),
    requestRetry: createRequestRetry(dependencies),
    updateIncident: createUpdateIncident(dependencies),
    advanceRetryJob: createAdvanceRetryJob(dependencies),
    purge: createPurge(dependencies),
    eraseOrganisation: createEraseOrganisation(dependencies),
  }
}

export type Activities = ReturnType<typeof createActivities>

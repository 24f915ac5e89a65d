import type { AttemptDependencies } from '../src/deliveries/attempt/attempt-request.ts'
import type { RetryJobDependencies } from '../src/deliveries/retry-jobs/advance-retry-job.ts'
import { createAskForRetry } from './ask-for-retry.ts'
import type { Shutdown } from '../src/shutdown.ts'
import type { SendDependencies } from '../src/notifications/send-due.ts'
import type { PurgeDependencies } from '../src/retention/purge.ts'
import { createKeepIncident } from './keep-incident.ts'
import { createMakeAttempt } from './make-attempt.ts'
import { createPurge } from './purge.ts'
import { createAdvanceJob } from './retry-job.ts'

export type ActivityDependencies = AttemptDependencies &
  RetryJobDependencies &
  PurgeDependencies &
  SendDependencies & { shutdown: Pick<Shutdown, 'stopping'> }

/** The activities of a worker, with their dependencies closed over. */
export function createActivities(dependencies: ActivityDependencies) {
  return {
    makeAttempt: createMakeAttempt(dependencies),
    askForRetry: createAskForRetry(dependencies),
    keepIncident: createKeepIncident(dependencies),
    advanceJob: createAdvanceJob(dependencies),
    purge: createPurge(dependencies),
  }
}

export type Activities = ReturnType<typeof createActivities>

import {
  advanceRetryJob,
  type JobProgress,
  type RetryJobDependencies,
} from '../src/deliveries/retry/advance-retry-job.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/** Running twice is harmless: the cursors of the job are advanced under their locks. */
export function createAdvanceRetryJob(dependencies: RetryJobDependencies) {
  return (job: { organisationId: string; jobId: string }): Promise<JobProgress> =>
    withHeartbeat(({ cancelled }) => advanceRetryJob(dependencies, job, cancelled))
}

import { advanceRetryJob, type RetryJobDependencies } from '../src/deliveries/retry-jobs/advance-retry-job.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/** Running twice is harmless: each place of the job is moved under its lock, from where it stands. */
export function createAdvanceJob(dependencies: RetryJobDependencies) {
  return (job: { organisationId: string; jobId: string }): Promise<{ running: boolean; moved: boolean }> =>
    withHeartbeat(({ cancelled }) => advanceRetryJob(dependencies, job, cancelled))
}

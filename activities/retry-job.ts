import { finishRetryJob, listRetryJobWebhooks } from '../src/db/queries/retry-jobs.ts'
import { untilDatabaseAnswers } from '../src/delivery/patience.ts'
import {
  retryWebhookDeliveries,
  type RetryJobDependencies,
  type RetryJobPart,
} from '../src/delivery/retry-webhook-deliveries.ts'
import { withHeartbeat } from './with-heartbeat.ts'

type JobIds = { organisationId: string; jobId: string }

/** Running any of them twice is harmless: the job's place and its end stand in the database. */
export function createRetryJobActivities(dependencies: RetryJobDependencies) {
  const { dataSource } = dependencies
  return {
    listJobWebhooks: ({ organisationId, jobId }: JobIds): Promise<string[]> =>
      withHeartbeat((signal) =>
        untilDatabaseAnswers(() => listRetryJobWebhooks(dataSource, organisationId, jobId), signal),
      ),

    retryWebhookDeliveries: (part: RetryJobPart): Promise<void> =>
      withHeartbeat((signal) => retryWebhookDeliveries(dependencies, part, signal)),

    finishJob: ({ organisationId, jobId }: JobIds): Promise<void> =>
      withHeartbeat((signal) =>
        untilDatabaseAnswers(() => finishRetryJob(dataSource, organisationId, jobId), signal),
      ),
  }
}

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
      withHeartbeat(({ cancelled }) =>
        untilDatabaseAnswers(() => listRetryJobWebhooks(dataSource, organisationId, jobId), cancelled),
      ),

    retryWebhookDeliveries: (part: RetryJobPart): Promise<void> =>
      withHeartbeat(({ cancelled }) => retryWebhookDeliveries(dependencies, part, cancelled)),

    finishJob: ({ organisationId, jobId }: JobIds): Promise<void> =>
      withHeartbeat(({ cancelled }) =>
        untilDatabaseAnswers(() => finishRetryJob(dataSource, organisationId, jobId), cancelled),
      ),
  }
}

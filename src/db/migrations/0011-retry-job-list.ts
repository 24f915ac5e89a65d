import { createIndexMigration } from './migration-steps.ts'

/** Creates the index that lists an organisation's retry jobs, newest first. */
export const RetryJobList11 = createIndexMigration('RetryJobList1765000000000', [
  ['retry_job_list_idx', `"retry_job" ("organisation_id", "id")`],
])

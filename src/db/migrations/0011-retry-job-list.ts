import type { MigrationInterface, QueryRunner } from 'typeorm'
import { createIndexConcurrently } from './0007-online-indexes.ts'

/** Creates the index that lists an organisation's retry jobs, newest first, while Posthorn runs. */
export class RetryJobList11 implements MigrationInterface {
  readonly name = 'RetryJobList1765000000000'
  readonly transaction = false

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, 'retry_job_list_idx', `"retry_job" ("organisation_id", "id")`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX IF EXISTS "retry_job_list_idx"')
  }
}

import { createMigration } from './migration-steps.ts'

/** Checks the rows from before for the constraints of migrations 3 and 4, which reads and writes do not wait for. They may stay so. */
export const ValidateConstraints6 = createMigration(
  'ValidateConstraints1764500000000',
  [
    `ALTER TABLE "session" VALIDATE CONSTRAINT "FK_7fb1b2573248384a99cdbd4cc1c"`,
    `ALTER TABLE "session" VALIDATE CONSTRAINT "session_key_or_member_check"`,
    `ALTER TABLE "retry_job" VALIDATE CONSTRAINT "retry_job_mode_check"`,
  ],
  [],
)

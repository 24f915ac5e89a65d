import type { MigrationInterface, QueryRunner } from 'typeorm'
import { applyStatements } from './apply-statements.ts'

/** Checks the rows from before for the constraints of migrations 3 and 4, which reads and writes do not wait for. */
export class ValidateConstraints6 implements MigrationInterface {
  readonly name = 'ValidateConstraints1764500000000'

  async up(runner: QueryRunner): Promise<void> {
    await applyStatements(runner, UP)
  }

  /** A constraint that is validated may stay so. */
  async down(): Promise<void> {}
}

const UP = [
  `ALTER TABLE "session" VALIDATE CONSTRAINT "FK_7fb1b2573248384a99cdbd4cc1c"`,
  `ALTER TABLE "session" VALIDATE CONSTRAINT "session_key_or_member_check"`,
  `ALTER TABLE "retry_job" VALIDATE CONSTRAINT "retry_job_mode_check"`,
]

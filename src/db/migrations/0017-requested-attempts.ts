import type { MigrationInterface, QueryRunner } from 'typeorm'

/** Records whether a user requested the attempt in progress. Renames an unused column. */
export class RequestedAttempts17 implements MigrationInterface {
  readonly name = 'RequestedAttempts1765600000000'

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE "delivery" RENAME COLUMN "revived" TO "attempt_requested"`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE "delivery" RENAME COLUMN "attempt_requested" TO "revived"`)
  }
}

import type { MigrationInterface, QueryRunner } from 'typeorm'

/** Keeps, of an attempt under way, whether a person asked for it: in the place of a column that nothing used. */
export class RequestedAttempts17 implements MigrationInterface {
  readonly name = 'RequestedAttempts1765600000000'

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE "delivery" RENAME COLUMN "revived" TO "attempt_requested"`)
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE "delivery" RENAME COLUMN "attempt_requested" TO "revived"`)
  }
}

import type { MigrationInterface, QueryRunner } from 'typeorm'

/** The index by which completed deliveries that are still to have a workflow are found. */
export class FirstAttempts7 implements MigrationInterface {
  readonly name = 'FirstAttempts1764600000000'

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE INDEX "delivery_follow_idx" ON "delivery" ("sweep_at") WHERE sweep_at IS NOT NULL AND state = 'completed'`,
    )
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX "delivery_follow_idx"`)
  }
}

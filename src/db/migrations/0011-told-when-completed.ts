import type { MigrationInterface, QueryRunner } from 'typeorm'

/** Workflows are told of deliveries that were completed behind their back; the index of those without one is apart. */
export class ToldWhenCompleted11 implements MigrationInterface {
  readonly name = 'ToldWhenCompleted1765000000000'

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX "delivery_tell_idx"`)
    await runner.query(
      `CREATE INDEX "delivery_tell_idx" ON "delivery" ("sweep_at")
        WHERE sweep_at IS NOT NULL AND (state = 'stopped' OR state = 'completed' AND started_at IS NOT NULL)`,
    )
    await runner.query(`DROP INDEX "delivery_follow_idx"`)
    await runner.query(
      `CREATE INDEX "delivery_follow_idx" ON "delivery" ("sweep_at")
        WHERE sweep_at IS NOT NULL AND state = 'completed' AND started_at IS NULL`,
    )
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX "delivery_tell_idx"`)
    await runner.query(
      `CREATE INDEX "delivery_tell_idx" ON "delivery" ("sweep_at") WHERE sweep_at IS NOT NULL AND state = 'stopped'`,
    )
    await runner.query(`DROP INDEX "delivery_follow_idx"`)
    await runner.query(
      `CREATE INDEX "delivery_follow_idx" ON "delivery" ("sweep_at") WHERE sweep_at IS NOT NULL AND state = 'completed'`,
    )
  }
}

import type { MigrationInterface, QueryRunner } from 'typeorm'

/**
 * Splits the index of what the sweep looks after: deliveries that have no workflow yet, webhook by webhook, and those
 * that have one, by time. Each delivery is in one of them, so that neither costs more than the one before.
 */
export class SweepIndexes12 implements MigrationInterface {
  readonly name = 'SweepIndexes1765100000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `CREATE INDEX "delivery_unstarted_idx" ON "delivery" ("webhook_id", "sweep_at")
    WHERE state IN ('pending', 'in_progress', 'waiting') AND started_at IS NULL AND attempts = 0`,
  `CREATE INDEX "delivery_started_idx" ON "delivery" ("sweep_at")
    WHERE state IN ('pending', 'in_progress', 'waiting') AND (started_at IS NOT NULL OR attempts > 0)`,
  `DROP INDEX "delivery_sweep_idx"`,
]

const DOWN = [
  `CREATE INDEX "delivery_sweep_idx" ON "delivery" ("sweep_at") WHERE state IN ('pending', 'in_progress', 'waiting')`,
  `DROP INDEX "delivery_started_idx"`,
  `DROP INDEX "delivery_unstarted_idx"`,
]

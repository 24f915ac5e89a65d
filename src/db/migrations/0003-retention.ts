import type { MigrationInterface, QueryRunner } from 'typeorm'

/** The indexes by which retention finds what is old, without scanning a table. */
export class PurgeIndex3 implements MigrationInterface {
  readonly name = 'PurgeIndex1764200000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `CREATE INDEX "delivery_purge_idx" ON "delivery" ("state", "completed_at") WHERE completed_at IS NOT NULL`,
  `CREATE INDEX "event_created_idx" ON "event" ("created_at")`,
  `CREATE INDEX "idempotency_key_created_idx" ON "idempotency_key" ("created_at")`,
]

const DOWN = [
  `DROP INDEX "idempotency_key_created_idx"`,
  `DROP INDEX "event_created_idx"`,
  `DROP INDEX "delivery_purge_idx"`,
]

import type { MigrationInterface, QueryRunner } from 'typeorm'

/** The name of a revoked key can be given to another one. */
export class ApiKeyNames5 implements MigrationInterface {
  readonly name = 'ApiKeyNames1764400000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `DROP INDEX "api_key_name_idx"`,
  `CREATE UNIQUE INDEX "api_key_name_idx" ON "api_key" ("organisation_id", "member_id", "name") WHERE revoked_at IS NULL`,
]

/** Fails where a name was given twice: which of the keys should go is not for a migration to say. */
const DOWN = [
  `DROP INDEX "api_key_name_idx"`,
  `CREATE UNIQUE INDEX "api_key_name_idx" ON "api_key" ("organisation_id", "member_id", "name")`,
]

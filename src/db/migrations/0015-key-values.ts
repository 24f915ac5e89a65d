import type { MigrationInterface, QueryRunner } from 'typeorm'

/**
 * Binds sessions and stream tickets to the value of their API key. Those that exist end: nobody knows the value they
 * were opened with.
 */
export class KeyValues15 implements MigrationInterface {
  readonly name = 'KeyValues1765400000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = ['session', 'stream_ticket'].flatMap((table) => [
  `DELETE FROM "${table}"`,
  `ALTER TABLE "${table}" ADD "key_hash" bytea NOT NULL`,
])

const DOWN = ['session', 'stream_ticket'].map((table) => `ALTER TABLE "${table}" DROP COLUMN "key_hash"`)

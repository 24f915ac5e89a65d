import type { MigrationInterface, QueryRunner } from 'typeorm'
import { applyStatements } from './apply-statements.ts'

/** Adds the session and the API key that made a push subscription. Those from before have neither. */
export class PushOwners9 implements MigrationInterface {
  readonly name = 'PushOwners1764800000000'

  async up(runner: QueryRunner): Promise<void> {
    await applyStatements(runner, UP)
  }

  async down(runner: QueryRunner): Promise<void> {
    await applyStatements(runner, DOWN)
  }
}

const UP = [
  `ALTER TABLE "push_subscription"
    ADD COLUMN "session_hash" bytea,
    ADD COLUMN "api_key_id" uuid,
    ADD COLUMN "key_hash" bytea`,
]

const DOWN = [
  `ALTER TABLE "push_subscription"
    DROP COLUMN "session_hash",
    DROP COLUMN "api_key_id",
    DROP COLUMN "key_hash"`,
]

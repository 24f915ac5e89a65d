import type { MigrationInterface, QueryRunner } from 'typeorm'
import { applyStatements } from './apply-statements.ts'

/** Adds to deliveries since when their workflow is paused in Temporal. */
export class PausedWorkflows8 implements MigrationInterface {
  readonly name = 'PausedWorkflows1764700000000'

  async up(runner: QueryRunner): Promise<void> {
    await applyStatements(runner, [`ALTER TABLE "delivery" ADD COLUMN "paused_since" timestamptz`])
  }

  async down(runner: QueryRunner): Promise<void> {
    await applyStatements(runner, [`ALTER TABLE "delivery" DROP COLUMN "paused_since"`])
  }
}

import { createMigration } from './migration-steps.ts'

/** Adds to deliveries since when their workflow is paused in Temporal. */
export const PausedWorkflows8 = createMigration(
  'PausedWorkflows1764700000000',
  [`ALTER TABLE "delivery" ADD COLUMN "paused_since" timestamptz`],
  [`ALTER TABLE "delivery" DROP COLUMN "paused_since"`],
)

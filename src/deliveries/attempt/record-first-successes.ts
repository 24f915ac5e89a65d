import type { DataSource } from 'typeorm'
import { createGrouped, type Grouped } from '../../db/grouped.ts'
import { recordFirstSuccesses, type AttemptRecord, type FirstSuccess } from '../../db/queries/outcomes.ts'

/** Records a first attempt that succeeded. */
export type RecordFirstSuccess = Grouped<AttemptRecord, FirstSuccess>

/** How many groups of outcomes are committed at once, and how many outcomes one may hold. */
const LANES = 4
const MOST = 100

const NONE: FirstSuccess = { isRecorded: false, mayCloseIncident: false }

/**
 * Outcomes of the same instant share a statement and its commit. `follow`: marks deliveries that were
 * completed inline for a workflow.
 */
export function createRecordFirstSuccess(
  dataSource: DataSource,
  options: { follow: boolean },
): RecordFirstSuccess {
  return createGrouped({
    runAll: (records) => recordFirstSuccesses(dataSource, records, options.follow),
    runOne: async (record) => (await recordFirstSuccesses(dataSource, [record], options.follow))[0] ?? NONE,
    lanes: LANES,
    most: MOST,
  })
}

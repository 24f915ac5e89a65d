import type { DataSource } from 'typeorm'
import { sweepOthers } from '../../db/queries/recovery.ts'
import { sweepDeliveries } from '../protocol/sweep.ts'

/** Makes everything due for the sweeper that had a workflow: Temporal has lost its data, and with it all workflows. */
export async function sweepEverything(dataSource: DataSource): Promise<void> {
  await sweepDeliveries(dataSource)
  await sweepOthers(dataSource)
}

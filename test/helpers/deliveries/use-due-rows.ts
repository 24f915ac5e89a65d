import { findUnstarted } from '../../../src/db/queries/recovery.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import type { RowState } from './set-row.ts'
import { useRows, type OwnWebhook } from './use-rows.ts'

const EVERY_ROW = { limit: 1_000, defaultRoom: 1_000, rooms: [] }

export const idsOf = (rows: readonly { deliveryId: string }[]): string[] =>
  rows.map(({ deliveryId }) => deliveryId)

/** A database that is empty before each test, and what the sweeper reads in it. */
export function useDueRows() {
  const suite = useRows()
  const { database } = suite
  beforeEach(() => database.dataSource.query('TRUNCATE delivery CASCADE'))
  /** So many deliveries of the webhook, due for the sweeper one after the other; the first since `sinceMs`. */
  async function due(
    webhook: OwnWebhook,
    count: number,
    { to = { state: 'pending' }, sinceMs = 60_000 }: { to?: RowState; sinceMs?: number } = {},
  ): Promise<CommittedDelivery[]> {
    const deliveries: CommittedDelivery[] = []
    for (let index = 0; index < count; index++)
      deliveries.push(await suite.deliveryIn({ ...to, sweepInMs: index * 10 - sinceMs }, webhook))
    return deliveries
  }
  const unstarted = (options: Partial<Parameters<typeof findUnstarted>[1]> = {}) =>
    findUnstarted(database.dataSource, { ...EVERY_ROW, ...options })
  return { ...suite, due, unstarted }
}

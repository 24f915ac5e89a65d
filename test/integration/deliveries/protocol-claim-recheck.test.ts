import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { sql } from '../../../src/db/connection/db.ts'
import { loadSql } from '../../../src/deliveries/protocol/load-sql.ts'
import { openTransaction, untilWaitingForLock } from '../../helpers/database/database.ts'
import { setRow, type RowState } from '../../helpers/deliveries/set-row.ts'
import { replaceOnce } from '../../helpers/mutate.ts'
import { useRows } from '../../helpers/deliveries/use-rows.ts'

/** The statement, which waits between its snapshot and its rows until no other transaction has the lock. */
const WAITING = replaceOnce(
  loadSql('claim').text,
  '(SELECT :ids::uuid[])',
  '(SELECT :ids::uuid[] FROM pg_advisory_xact_lock(4711))',
  'the claim',
)

describe('the claim of a delivery that changes after the statement has begun', () => {
  const suite = useRows()

  async function claimAfter(
    before: RowState,
    change: (deliveryId: string) => Promise<unknown>,
  ): Promise<number> {
    const { dataSource } = suite.database
    const { deliveryId, organisationId } = await suite.deliveryIn(before)
    const holder = await openTransaction(dataSource)
    try {
      await holder.query('SELECT pg_advisory_xact_lock(4711)')
      const claiming = sql(WAITING, {
        ids: [deliveryId],
        organisationIds: [organisationId],
        numbers: [1],
        owners: [randomUUID()],
        areWorkflows: [false],
        leaseMs: 60_000,
        sweepDelayMs: 15_000,
      }).rows(dataSource)
      await untilWaitingForLock(dataSource)
      await change(deliveryId)
      await holder.commitTransaction()
      return (await claiming).length
    } finally {
      await holder.release()
    }
  }
  const to = (state: RowState) => (deliveryId: string) => setRow(suite.database.dataSource, deliveryId, state)
  const erase = (deliveryId: string) =>
    suite.database.dataSource.query('UPDATE delivery SET is_erased = true WHERE id = $1', [deliveryId])
  const touch = (deliveryId: string) =>
    suite.database.dataSource.query('UPDATE delivery SET sweep_at = sweep_at WHERE id = $1', [deliveryId])

  for (const [what, before, change, claims] of [
    ['is completed', { state: 'pending' }, to({ state: 'completed' }), 0],
    ['is stopped', { state: 'pending' }, to({ state: 'stopped', attempts: 0 }), 0],
    ['is claimed by another run', { state: 'pending' }, to({ state: 'in_progress' }), 0],
    ['has its lease renewed', { state: 'in_progress', leaseMs: -1 }, to({ state: 'in_progress' }), 0],
    ['has its attempt recorded', { state: 'pending' }, to({ state: 'waiting', attempts: 1, dueInMs: -1 }), 0],
    ['is erased', { state: 'pending' }, erase, 0],
    ['is changed in what does not matter', { state: 'pending' }, touch, 1],
  ] as const)
    it(`is ${claims === 0 ? 'refused' : 'granted'} where it ${what}`, async () => {
      expect(await claimAfter(before, change)).to.equal(claims)
    })
})

import { expect } from 'chai'
import { findOverdue } from '../../../src/db/queries/recovery.ts'
import { sweepDeliveries } from '../../../src/deliveries/protocol/sweep.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { createMember, createWebhookRow } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const CROWD = 3_000

describe("recovery after a loss of Temporal's data", () => {
  const database = useDatabase()

  it('takes deliveries webhook by webhook, however many of one are overdue', async () => {
    const { dataSource } = database
    const { organisationId } = await createMember(dataSource)
    const overdue = async (count: number): Promise<string[]> => {
      const { id: webhookId } = await createWebhookRow(dataSource, {
        organisationId,
        url: 'https://receiver.example.com/',
      })
      return writeBacklog(dataSource, { organisationId, webhookId, state: 'waiting', count })
    }
    const crowd = await overdue(CROWD)
    const waited = await overdue(CROWD)
    const few = await overdue(3)
    const later = await overdue(1)
    await dataSource.query(
      `UPDATE delivery SET next_attempt_at = now() - interval '1 s', sweep_at = now() + interval '15 s'
        WHERE NOT id = ANY($1::uuid[])`,
      [later],
    )
    // These were due while Temporal was away.
    await dataSource.query(
      `UPDATE delivery SET sweep_at = now() - interval '1 minute' WHERE id = ANY($1::uuid[])`,
      [waited],
    )
    await sweepDeliveries(dataSource)
    await dataSource.query('SELECT pg_sleep(0.01)')
    const taken = await findOverdue(dataSource, 11)
    const ids = new Set(taken.map(({ deliveryId }) => deliveryId))
    expect(few.filter((id) => ids.has(id))).to.have.length(3)
    expect(crowd.filter((id) => ids.has(id))).to.have.length(4)
    expect(waited.filter((id) => ids.has(id))).to.have.length(4)
  })
})

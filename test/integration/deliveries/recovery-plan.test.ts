import { expect } from 'chai'
import { findOverdue, findUnstarted } from '../../../src/db/queries/recovery.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { planOf } from '../../helpers/database/plan.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const WAITING = 5_000

describe("the sweep's statements next to many deliveries that are not due", () => {
  const database = useDatabase()

  before(async () => {
    const { dataSource } = database
    const { organisationId } = await createMember(dataSource)
    const url = 'https://receiver.example.com/'
    const { id: webhookId } = await createWebhookRow(dataSource, { organisationId, url })
    await writeBacklog(dataSource, { organisationId, webhookId, state: 'waiting', count: WAITING })
    await writeBacklog(dataSource, { organisationId, webhookId, state: 'failed', count: WAITING })
    for (let count = 0; count < 10; count++) await publishRow(dataSource, organisationId)
    await dataSource.query('ANALYZE')
  })

  it('read the index of what has no workflow, and no table from end to end', async () => {
    const options = { limit: 200, defaultRoom: 200, rooms: [] }
    const { scanned, indexes } = await planOf(database.dataSource, (db) => findUnstarted(db, options))
    expect(indexes).to.include('delivery_unstarted_idx')
    expect(indexes).not.to.include.members(['delivery_waiting_idx', 'delivery_webhook_idx'])
    expect(scanned).not.to.include('delivery')
  })

  it('read the index of what has a workflow, and no table from end to end', async () => {
    const { scanned, indexes } = await planOf(database.dataSource, (db) => findOverdue(db, 50))
    expect(indexes).to.include('delivery_started_idx')
    expect(scanned).not.to.include('delivery')
  })
})

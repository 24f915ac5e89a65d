import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { expect } from 'chai'
import type { ActivityDependencies } from '../../activities/index.ts'
import { createDeliveryWorkflows, deliveryWorkflowId } from '../../src/temporal/delivery-workflows.ts'
import { attemptDependencies } from '../helpers/deliveries/attempts.ts'
import { createMember, createWebhookRow, publishRow } from '../helpers/database/factories.ts'
import type { History } from '../helpers/temporal/history.ts'
import { createReceiver, type Answer, type Receiver } from '../helpers/receivers/receiver.ts'
import { createTimeSkippingEngine, withWorker } from '../helpers/temporal/time-skipping.ts'
import { useDatabase } from '../helpers/database/use-database.ts'

const deliveryState = defineSearchAttributeKey('DeliveryState', SearchAttributeType.KEYWORD)

describe('the search attribute DeliveryState', function () {
  this.timeout(60_000)
  const database = useDatabase()
  let engine: TestWorkflowEnvironment
  let dependencies: ActivityDependencies
  let receiver: Receiver
  let answer: Answer

  before(async () => {
    engine = await createTimeSkippingEngine()
    dependencies = attemptDependencies(database.dataSource)
  })
  after(async () => {
    await dependencies.httpClient.close()
    await engine.teardown()
  })
  beforeEach(async () => {
    receiver = await createReceiver({ answer: (...args) => answer(...args) })
  })
  afterEach(() => receiver.close())

  /** Delivers one event from the given attempt on; returns what the run says in the end and what it upserted. */
  async function deliverFrom(number: number): Promise<{ value: string | undefined; upserts: number }> {
    const { dataSource } = database
    const { organisationId } = await createMember(dataSource)
    await createWebhookRow(dataSource, { organisationId, url: receiver.url })
    const [delivery] = await publishRow(dataSource, organisationId)
    const { deliveryId } = delivery!
    await dataSource.query(
      `UPDATE delivery SET attempts = $2, state = CASE $2::int WHEN 0 THEN state ELSE 'waiting' END WHERE id = $1`,
      [deliveryId, number - 1],
    )
    return withWorker(engine, dependencies, async (taskQueue) => {
      const client = () => engine.client
      const workflows = createDeliveryWorkflows({ client, taskQueue, leadMs: 0, eager: false })
      const dueAtMs = number === 1 ? null : (await engine.currentTimeMs()) + 60_000
      await workflows.start(delivery!, { number, dueAtMs }, { again: false })
      const handle = engine.client.workflow.getHandle(deliveryWorkflowId(deliveryId))
      await handle.result()
      const history: History = await handle.fetchHistory()
      const upserted = (history.events ?? []).filter(
        (event) => event.upsertWorkflowSearchAttributesEventAttributes,
      )
      const described = await handle.describe()
      return { value: described.typedSearchAttributes.get(deliveryState), upserts: upserted.length }
    })
  }

  it('is never set for a delivery that succeeds at once', async () => {
    answer = () => 200
    expect(await deliverFrom(1)).to.deep.equal({ value: undefined, upserts: 0 })
  })

  it('is set at the first wait and at the end of a delivery that waits, however often it waits', async () => {
    answer = (index) => (index < 3 ? 500 : 200)
    expect(await deliverFrom(1)).to.deep.equal({ value: 'completed', upserts: 2 })
  })

  it('is set at the first wait of a run that begins with a retry, and at its end', async () => {
    answer = () => 500
    expect(await deliverFrom(9)).to.deep.equal({ value: 'failed', upserts: 2 })
  })
})

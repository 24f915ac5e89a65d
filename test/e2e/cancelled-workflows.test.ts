import { setTimeout as delay } from 'node:timers/promises'
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import { expect } from 'chai'
import { deliveryWorkflowId, incidentWorkflowId } from '../../src/temporal/workflows.ts'
import { SEARCH_ATTRIBUTE_NAMES } from '../../src/temporal/namespace.ts'
import type { DeliverySnapshot } from '../../src/domain/workflow-inputs.ts'
import { eventually } from '../helpers/eventually.ts'
import { useServedStage } from '../helpers/processes/stage.ts'
import { useTemporalClient } from '../helpers/runner/servers.ts'

/** The fifth attempt waits for eight seconds. One that began its wait anew would be so late that half of it is over. */
const HALF_WAIT_MS = 4_000

/** Measured at most 60 ms late on a quiet machine; less than half of the wait. */
const LATEST_MS = 3_000

describe('a cancelled workflow, on a real Temporal server', () => {
  const stage = useServedStage(() => ({ env: { FIRST_ATTEMPT: 'workflow' } }))
  const client = useTemporalClient()

  const row = async (deliveryId: string) => {
    const [found] = await stage.dataSource.query<
      { state: string; attempts: number; next_attempt_at: Date | null }[]
    >('SELECT state, attempts, next_attempt_at FROM delivery WHERE id = $1', [deliveryId])
    return found!
  }
  /** Cancels the workflow, and returns its two runs once the second one runs. */
  const cancel = async (workflowId: string) => {
    const before = await client.workflow.getHandle(workflowId).describe()
    await client.workflow.getHandle(workflowId, before.runId).cancel()
    return eventually(async () => {
      const cancelled = await client.workflow.getHandle(workflowId, before.runId).describe()
      expect(cancelled.status.name).to.equal('CONTINUED_AS_NEW')
      const after = await client.workflow.getHandle(workflowId).describe()
      expect(after.status.name).to.equal('RUNNING')
      return { before, after }
    })
  }
  const arrivals = (deliveryId: string) =>
    stage.receiver.postsOf(deliveryId).map(({ arrivedAt }) => arrivedAt)

  it('that waits is succeeded by one that attempts at the same instant', async () => {
    stage.answerWith((index) => (index < 4 ? 500 : 200))
    const deliveryId = await stage.publish(stage.posthorn)
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 4 })
    const { next_attempt_at: dueAt } = await row(deliveryId)
    const handle = client.workflow.getHandle(deliveryWorkflowId(deliveryId))
    // The row knows the outcome of the attempt before its workflow does.
    const shown = await eventually(async () => {
      const snapshot = await handle.query<DeliverySnapshot>('deliveryState')
      expect(snapshot).to.include({ state: 'waiting', attempts: 4 })
      return snapshot
    })
    await delay(Math.max(0, dueAt!.getTime() - HALF_WAIT_MS - Date.now()))
    const { before, after } = await cancel(deliveryWorkflowId(deliveryId))
    expect(await handle.query('deliveryState')).to.deep.equal(shown)
    for (const key of SEARCH_ATTRIBUTE_NAMES.map((name) =>
      defineSearchAttributeKey(name, SearchAttributeType.KEYWORD),
    ))
      expect(after.typedSearchAttributes.get(key), key.name).to.equal(before.typedSearchAttributes.get(key))
    expect(after.priority?.fairnessKey).to.equal(stage.webhookId)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 5 })
    expect(arrivals(deliveryId)).to.have.length(5)
    expect(arrivals(deliveryId)[4]! - dueAt!.getTime()).to.be.within(-5, LATEST_MS)
    expect(await handle.result()).to.deep.equal({ state: 'completed', attempts: 5 })
  })

  it('that makes an attempt finishes it, and waits in one that is not cancelled', async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    stage.answerWith(async (index) => {
      if (index === 0) await held
      return index < 2 ? 500 : 200
    })
    const deliveryId = await stage.publish(stage.posthorn)
    await eventually(() => expect(arrivals(deliveryId)).to.have.length(1))
    const handle = client.workflow.getHandle(deliveryWorkflowId(deliveryId))
    await handle.cancel()
    await eventually(async () => {
      const { events } = await handle.fetchHistory()
      expect(Boolean(events?.at(-1)?.workflowTaskCompletedEventAttributes)).to.equal(true)
    })
    release()
    await stage.reaches(deliveryId, { state: 'completed', attempts: 3 })
    expect(arrivals(deliveryId)).to.have.length(3)
    expect(await handle.result()).to.deep.equal({ state: 'completed', attempts: 3 })
  })

  it('of a webhook that fails goes on with its incident', async () => {
    stage.answerWith(() => 500)
    const deliveryId = await stage.publish(stage.posthorn)
    await stage.fails(deliveryId)
    const [incident] = await stage.dataSource.query<{ id: string }[]>(
      'SELECT id FROM incident WHERE webhook_id = $1',
      [stage.webhookId],
    )
    const workflowId = incidentWorkflowId(stage.webhookId, incident!.id)
    await eventually(() => client.workflow.getHandle(workflowId).describe())
    await cancel(workflowId)
    stage.answerWith(() => 200)
    await eventually(async () => expect((await row(deliveryId)).state).to.equal('completed'))
    await client.workflow.getHandle(workflowId).result()
  })
})

import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Client, type WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client'
import { NativeConnection, Worker } from '@temporalio/worker'
import { expect } from 'chai'
import { deliveryWorkflowId } from '../../src/temporal/workflows.ts'
import { createTerminateIfStuck } from '../../src/temporal/workflow-progress.ts'
import { publishRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { parseExposition } from '../helpers/metrics/exposition.ts'
import { quietRuntime } from '../helpers/temporal/runtime.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { useStage } from '../helpers/processes/stage.ts'

const OTHER_CODE = fileURLToPath(new URL('../fixtures/workflows/other-deliver-event.ts', import.meta.url))

describe('a stuck workflow', () => {
  const stage = useStage()
  let connection: NativeConnection
  let client: Client

  before(async () => {
    quietRuntime()
    connection = await NativeConnection.connect({ address: testServers().temporalAddress })
    client = new Client({ connection })
  })
  after(() => connection.close())

  /** Starts the delivery's workflow with other code, of which the history has a timer that fires in three seconds. */
  async function startWithOtherCode(
    deliveryId: string,
    taskQueue: string,
  ): Promise<WorkflowHandleWithFirstExecutionRunId> {
    const worker = await Worker.create({ connection, taskQueue, workflowsPath: OTHER_CODE })
    return worker.runUntil(async () => {
      const workflowId = deliveryWorkflowId(deliveryId)
      const handle = await client.workflow.start('deliverEvent', { workflowId, taskQueue })
      await eventually(async () => {
        const { events } = await handle.fetchHistory()
        expect(events?.some((event) => event.timerStartedEventAttributes)).to.equal(true)
      })
      return handle
    })
  }

  it('is replaced by the sweeper, which logs and counts it, and the delivery continues', async () => {
    const taskQueue = `stuck-${randomUUID()}`
    const [delivery] = await publishRow(stage.dataSource, stage.member.organisationId, { leaseMs: -1 })
    const { deliveryId } = delivery!
    const stuck = await startWithOtherCode(deliveryId, taskQueue)
    // Starting it again returns "already started".
    const posthorn = await stage.start({ taskQueue, env: { FIRST_ATTEMPT: 'workflow', METRICS_PORT: '0' } })
    await eventually(async () => {
      // The sweeper examines it at growing intervals: here as soon as it has put it off.
      await stage.dataSource.query(
        `UPDATE delivery SET sweep_at = now() WHERE id = $1 AND state = 'pending' AND sweep_at > now() + interval '1 s'`,
        [deliveryId],
      )
      await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, 1_000)
    }, 90_000)
    expect(stage.receiver.postsOf(deliveryId)).to.have.length(1)
    const run = client.workflow.getHandle(stuck.workflowId, stuck.firstExecutionRunId)
    expect((await run.describe()).status.name).to.equal('TERMINATED')
    const line = posthorn
      .log()
      .split('\n')
      .find((text) => text.includes('sweep.replaced_workflow'))
    const logged = JSON.parse(line ?? '{}') as { cause: string }
    expect(logged).to.include({ level: 50, deliveryId, attempt: 1 })
    // Which of the two it is depends on what of the history the code meets first.
    expect(logged.cause).to.be.oneOf(['non_determinism', 'workflow_error'])
    const text = await (await posthorn.scrape()).text()
    const counted = parseExposition(text).valueOf('posthorn_sweep_recovered_workflows_total', {
      reason: 'stuck',
    })
    expect(counted).to.equal(1)
  })

  it('is distinguished from one that is queued or has an attempt in progress', async () => {
    const terminateIfStuck = createTerminateIfStuck(() => client)
    const queued = await client.workflow.start('deliverEvent', {
      workflowId: deliveryWorkflowId(randomUUID()),
      taskQueue: `nobody-${randomUUID()}`,
    })
    expect(await terminateIfStuck(queued.workflowId)).to.deep.equal({ state: 'alive' })
    await queued.terminate()
    expect(await terminateIfStuck(queued.workflowId)).to.deep.equal({ state: 'gone' })

    stage.answerWith(() => null)
    const posthorn = await stage.start({ env: { FIRST_ATTEMPT: 'workflow' } })
    const attempted = await stage.publish(posthorn)
    await eventually(() => expect(stage.receiver.postsOf(attempted)).to.have.length(1))
    expect(await terminateIfStuck(deliveryWorkflowId(attempted))).to.deep.equal({ state: 'alive' })
  })
})

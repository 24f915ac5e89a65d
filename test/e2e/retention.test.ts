import { randomUUID } from 'node:crypto'
import { Client, Connection, ScheduleOverlapPolicy, type ScheduleDescription } from '@temporalio/client'
import { expect } from 'chai'
import { RETENTION_SCHEDULE_ID } from '../../src/temporal/retention-schedule.ts'
import { eventually } from '../helpers/eventually.ts'
import { createMember, createWebhookRow, publishRow } from '../helpers/database/factories.ts'
import { startPosthorn, type PosthornProcess } from '../helpers/processes/posthorn.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { useDatabase } from '../helpers/database/database.ts'
import { setRow } from '../helpers/deliveries/set-row.ts'

const DAY_SECONDS = 86_400
const TASK_QUEUE = 'retention'

describe('the retention schedule, on a real Temporal server', () => {
  const namespace = `retention-${randomUUID()}`
  const running: PosthornProcess[] = []
  const database = useDatabase()
  let temporal: Client

  before(async () => {
    const connection = await Connection.connect({ address: testServers().temporalAddress })
    // Of its own, since every worker makes the schedule of its namespace its own.
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: DAY_SECONDS as never },
    })
    temporal = new Client({ connection, namespace })
  })
  after(async () => {
    for (const posthorn of running) expect(await posthorn.stop()).to.equal(0)
    await temporal.connection.close()
  })

  const schedule = () => temporal.schedule.getHandle(RETENTION_SCHEDULE_ID)
  const start = async (env: Record<string, string>, command: 'worker' | 'api' = 'worker') => {
    const { temporalAddress } = testServers()
    running.push(
      await startPosthorn({
        command,
        databaseUrl: database.url,
        temporalAddress,
        taskQueue: TASK_QUEUE,
        env: { TEMPORAL_NAMESPACE: namespace, ...env },
      }),
    )
  }
  /** The schedule once it holds these limits. */
  const described = (completedDays: number, failedDays: number): Promise<ScheduleDescription> =>
    eventually(async () => {
      const found = await schedule().describe()
      expect(found.action).to.deep.include({
        taskQueue: TASK_QUEUE,
        args: [{ completedDays, failedDays, auditDays: 365 }],
      })
      return found
    })

  it('exists after the start of a worker: every hour, one run at a time', async () => {
    await start({ RETENTION_FAILED_DAYS: '60' })
    const { spec, policies, action } = await described(30, 60)
    expect(spec.intervals?.map(({ every }) => every)).to.deep.equal([3_600_000])
    expect(policies).to.deep.include({ overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: 600_000 })
    expect(action).to.deep.include({ workflowType: 'purge', workflowRunTimeout: 3_300_000 })
  })

  it('is one schedule with the settings of the latest start, and stays paused where an operator paused it', async () => {
    await schedule().pause('audit')
    await start({ RETENTION_COMPLETED_DAYS: '10', RETENTION_FAILED_DAYS: '20' })
    const { spec, state } = await described(10, 20)
    expect(spec.intervals).to.have.length(1)
    expect(state).to.include({ paused: true, note: 'audit' })
    const ids: string[] = []
    for await (const { scheduleId } of temporal.schedule.list()) ids.push(scheduleId)
    expect(ids).to.deep.equal([RETENTION_SCHEDULE_ID])
  })

  it('is not changed by a process without a worker', async () => {
    const before = await schedule().describe()
    await start({ RETENTION_COMPLETED_DAYS: '99' }, 'api')
    expect((await schedule().describe()).info.lastUpdatedAt).to.deep.equal(before.info.lastUpdatedAt)
  })

  it('deletes what is older than its limit when it is triggered', async () => {
    const { dataSource } = database
    const { organisationId } = await createMember(dataSource)
    await createWebhookRow(dataSource, { organisationId, url: 'https://hooks.example.org/' })
    const [old] = await publishRow(dataSource, organisationId)
    const [young] = await publishRow(dataSource, organisationId)
    for (const [delivery, days] of [
      [old!, 11],
      [young!, 9],
    ] as const) {
      await setRow(dataSource, delivery.deliveryId, { state: 'completed' })
      await dataSource.query(
        `UPDATE delivery SET completed_at = now() - $2::int * interval '1 day' WHERE id = $1`,
        [delivery.deliveryId, days],
      )
    }
    await schedule().trigger()
    await eventually(async () => {
      const left = await dataSource.query<{ id: string }[]>(
        'SELECT id FROM delivery WHERE organisation_id = $1',
        [organisationId],
      )
      expect(left).to.deep.equal([{ id: young!.deliveryId }])
    })
    // The hour may have struck meanwhile: one of the runs deleted these.
    await eventually(async () => {
      const { recentActions } = (await schedule().describe()).info
      const ids = recentActions.map(({ action }) => action.workflow.workflowId)
      for (const id of ids) expect(id).to.match(/^purge\/hourly-\d{4}-/)
      const results = await Promise.all(ids.map((id) => temporal.workflow.getHandle(id).result()))
      expect(results).to.deep.include({
        deliveries: 1,
        events: 1,
        incidents: 0,
        auditEntries: 0,
        retryJobs: 0,
        idempotencyKeys: 0,
        finished: true,
      })
    })
  })
})

import { activityInfo } from '@temporalio/activity'
import { Worker } from '@temporalio/worker'
import { expect } from 'chai'
import { useTemporal, workflowBundle } from '../helpers/temporal/time-skipping.ts'

const TASK_QUEUE = 'jobs'

describe('the workflows of jobs, on a time-skipping server', () => {
  const temporal = useTemporal()

  /** Runs `work` next to a worker that has only these activities. */
  async function withActivities<T>(activities: object, work: () => Promise<T>): Promise<T> {
    const worker = await Worker.create({
      connection: temporal.environment.nativeConnection,
      taskQueue: TASK_QUEUE,
      workflowBundle: await workflowBundle(),
      activities,
    })
    return worker.runUntil(work)
  }

  it('give a pass of retention all the time of its run, and fail that after three with an error', async () => {
    let passes = 0
    const purge = () => {
      expect(activityInfo().startToCloseTimeoutMs).to.be.at.least(55 * 60_000)
      return Promise.reject(new Error(`pass ${++passes} failed`))
    }
    const failure: unknown = await withActivities({ purge }, () =>
      temporal.environment.client.workflow
        .execute('purge', {
          workflowId: 'purge',
          taskQueue: TASK_QUEUE,
          args: [{ completedDays: 30, failedDays: 90, auditDays: 365 }],
          workflowRunTimeout: '55 minutes',
        })
        .catch((error: unknown) => error),
    )
    expect(failure).to.have.nested.property('cause.cause.message', 'pass 3 failed')
    expect(passes).to.equal(3)
  })

  for (const { isRefused, title, minutes } of [
    { isRefused: true, title: 'take a step a minute while the webhook is disabled', minutes: 60 },
    { isRefused: false, title: 'take a step every five seconds while attempts are under way', minutes: 5 },
  ]) {
    it(title, async () => {
      let steps = 0
      const advanceRetryJob = () =>
        Promise.resolve({ isRunning: ++steps < 66, hasAdvanced: false, isRefused })
      const workflowId = `retry-${minutes}`
      const { startTime, closeTime } = await withActivities({ advanceRetryJob }, async () => {
        const handle = await temporal.environment.client.workflow.start('retryDeliveries', {
          workflowId,
          taskQueue: TASK_QUEUE,
          args: [{ organisationId: 'org_1', jobId: workflowId }],
        })
        await handle.result()
        return handle.describe()
      })
      expect((closeTime!.getTime() - startTime.getTime()) / 60_000).to.be.closeTo(minutes, 1)
    })
  }
})

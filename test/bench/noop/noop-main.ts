import { fileURLToPath } from 'node:url'
import { activityInfo } from '@temporalio/activity'
import { Client } from '@temporalio/client'
import { NativeConnection, Worker, type InjectedSinks } from '@temporalio/worker'
import { MAX_CACHED_WORKFLOWS, WORKFLOW_TASK_SLOTS } from '../../../src/temporal/worker.ts'
import { quietRuntime } from '../../helpers/temporal/runtime.ts'
import type { Pace } from '../harness/generator.ts'
import { serveHarness } from '../harness/harness-process.ts'
import { runAtPace } from '../harness/pace.ts'
import { clock } from '../measure/clock.ts'
import type { NoopActivities, NoopSinks } from './noop-workflow.ts'

// Client and worker of workflows with one activity, which do nothing: on one connection, so that they start eagerly as Posthorn's do.

export type NoopRequest = { address: string; workflows: number; pace: Pace }

/** `waits`: from the start of each workflow to its activity, in ms. */
export type NoopAnswer = { perSecond: number; waits: number[] }

const TASK_QUEUE = 'noop'
/** Until the worker polls and its code is warm. */
const WARM_UP_WORKFLOWS = 50

serveHarness(async ({ address, workflows, pace }: NoopRequest): Promise<NoopAnswer> => {
  quietRuntime()
  const connection = await NativeConnection.connect({ address })
  const counter = createCounter()
  const startedAt = new Map<string, number>()
  const waits: number[] = []
  const attempt = (): Promise<void> => {
    waits.push(clock() - startedAt.get(activityInfo().workflowExecution!.workflowId)!)
    return Promise.resolve()
  }
  const worker = await Worker.create({
    connection,
    taskQueue: TASK_QUEUE,
    activities: { attempt } satisfies NoopActivities,
    workflowsPath: fileURLToPath(new URL('./noop-workflow.ts', import.meta.url)),
    sinks: {
      noop: { ran: { fn: counter.count, callDuringReplay: false } },
    } satisfies InjectedSinks<NoopSinks>,
    maxConcurrentWorkflowTaskExecutions: WORKFLOW_TASK_SLOTS,
    maxCachedWorkflows: MAX_CACHED_WORKFLOWS,
  })
  const client = new Client({ connection })
  const start = (workflowId: string): Promise<unknown> => {
    startedAt.set(workflowId, clock())
    return client.workflow.start('doNothing', { workflowId, taskQueue: TASK_QUEUE, requestEagerStart: true })
  }
  const runMany = async (label: string, count: number): Promise<NoopAnswer> => {
    waits.length = 0
    const beganAt = clock()
    const allRan = counter.expect(count)
    let started = 0
    await runAtPace(pace, { events: count }, () => start(`${label}-${started++}`))
    await allRan
    return { perSecond: (count / (clock() - beganAt)) * 1_000, waits: [...waits] }
  }
  const run = `noop-${Date.now()}`
  const answer = await worker.runUntil(async () => {
    await runMany(`${run}-warm-up`, WARM_UP_WORKFLOWS)
    return runMany(run, workflows)
  })
  await connection.close()
  return answer
})

function createCounter(): { count: () => void; expect(count: number): Promise<void> } {
  let left = 0
  let reached: () => void = () => undefined
  return {
    count() {
      left -= 1
      if (left === 0) reached()
    },
    expect(count) {
      left = count
      return new Promise((resolve) => (reached = resolve))
    },
  }
}

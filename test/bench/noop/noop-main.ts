import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { NativeConnection, Worker, type InjectedSinks } from '@temporalio/worker'
import pLimit from 'p-limit'
import { MAX_CACHED_WORKFLOWS, WORKFLOW_TASK_SLOTS } from '../../../src/temporal/worker.ts'
import { quietRuntime } from '../../helpers/temporal/runtime.ts'
import { serveHarness } from '../harness/harness-process.ts'
import { clock } from '../measure/clock.ts'
import type { NoopActivities, NoopSinks } from './noop-workflow.ts'

// Client and worker of workflows with one activity, which do nothing: on one connection, so that they start eagerly as Posthorn's do.

/** `concurrency`: starts in progress at once. */
export type NoopRequest = { address: string; workflows: number; concurrency: number }

const TASK_QUEUE = 'noop'
/** Until the worker polls and its code is warm. */
const WARM_UP_WORKFLOWS = 50

serveHarness(async ({ address, workflows, concurrency }: NoopRequest) => {
  quietRuntime()
  const connection = await NativeConnection.connect({ address })
  const counter = createCounter()
  const worker = await Worker.create({
    connection,
    taskQueue: TASK_QUEUE,
    activities: { attempt: () => Promise.resolve() } satisfies NoopActivities,
    workflowsPath: fileURLToPath(new URL('./noop-workflow.ts', import.meta.url)),
    sinks: {
      noop: { ran: { fn: counter.count, callDuringReplay: false } },
    } satisfies InjectedSinks<NoopSinks>,
    maxConcurrentWorkflowTaskExecutions: WORKFLOW_TASK_SLOTS,
    maxCachedWorkflows: MAX_CACHED_WORKFLOWS,
  })
  const client = new Client({ connection })
  const limit = pLimit(concurrency)
  const runMany = async (label: string, count: number): Promise<number> => {
    const startedAt = clock()
    const allRan = counter.expect(count)
    await limit.map(Array.from({ length: count }), (_, index) =>
      client.workflow.start('doNothing', {
        workflowId: `${label}-${index}`,
        taskQueue: TASK_QUEUE,
        requestEagerStart: true,
      }),
    )
    await allRan
    return (count / (clock() - startedAt)) * 1_000
  }
  const run = `noop-${Date.now()}`
  const rate = await worker.runUntil(async () => {
    await runMany(`${run}-warm-up`, WARM_UP_WORKFLOWS)
    return runMany(run, workflows)
  })
  await connection.close()
  return rate
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

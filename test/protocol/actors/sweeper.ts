import type { Step } from '../explore.ts'
import { SWEEP_HOLD_MS } from '../product.ts'
import { numberOf, replaceAt, swap, without, type State, type SweepTask, type Workflow } from '../state.ts'
import { TASK_MS, type Actor, type Context } from './context.ts'
import { pull } from './puller.ts'
import { isAlive, started, woken } from './workflow.ts'

/** After this time the sweeper checks again on a workflow that is alive. */
const ALIVE_INTERVAL_MS = 15_000

/**
 * Takes a row that is due and has had a workflow, or is owed one; calls Temporal, or makes the attempt; and sets when to
 * look at the row again.
 */
export const sweeper: Actor = (state, context) => {
  const task = state.tasks.find((one): one is SweepTask => one.kind === 'sweep')
  if (task === undefined) return take(state, context)
  return task.phase === 'taken' ? act(state, task, context) : [settle(state, task, context)]
}

const nothing = { type: 'other' } as const

function take(state: State, { product }: Context): Step<State>[] {
  return state.image.delivery.flatMap((row, delivery) => {
    const seenInMs = numberOf(row['sweep_at'])
    const isOpen = row['completed_at'] === null
    if (seenInMs >= 0 || (isOpen && row['workflow_started_at'] === null)) return []
    const task: SweepTask = {
      kind: 'sweep',
      delivery,
      inMs: TASK_MS,
      phase: 'taken',
      seenInMs: SWEEP_HOLD_MS,
      call: 'none',
      row: {
        state: String(row['state']),
        attempts: Number(row['attempts']),
        hasWorkflow: row['workflow_started_at'] !== null,
        isRequested: row['retry_requested'] === true,
        dueInMs: typeof row['next_attempt_at'] === 'number' ? row['next_attempt_at'] : 0,
      },
    }
    return {
      kind: 'own' as const,
      label: `the sweeper takes D${delivery}`,
      take: async () => {
        const held = { delivery, seenInMs, inMs: SWEEP_HOLD_MS, isPaused: row['paused_since'] !== null }
        const { image, result } = await product.sweepLater(state, held)
        return result ? { ...state, image, tasks: [...state.tasks, task], happened: nothing } : null
      },
    }
  })
}

function act(state: State, task: SweepTask, context: Context): Step<State>[] {
  const { delivery, row } = task
  const workflow = state.workflows[delivery] ?? null
  const called = (call: SweepTask['call'], label: string, workflows = state.workflows): Step<State> => ({
    kind: 'own',
    label: `the sweeper ${label} D${delivery}`,
    take: () =>
      Promise.resolve({
        ...state,
        workflows,
        tasks: swap(state.tasks, task, { ...task, phase: 'called', call }),
        happened: nothing,
      }),
  })
  const next = { number: row.attempts + 1, dueInMs: row.dueInMs }
  if (['completed', 'failed', 'stopped'].includes(row.state)) {
    if (row.hasWorkflow) return [called('signalled', 'signals the end of', woken(state, delivery))]
    // Temporal starts none that has ever run.
    if (workflow !== null) return [called('found', 'finds the workflow of')]
    const ended: Workflow = {
      ...started(state, delivery, next)[delivery]!,
      phase: 'ended',
      number: 0,
      inMs: 0,
    }
    const following = replaceAt(state.workflows, delivery, ended)
    return [called('followed', 'starts the workflow that follows of', following)]
  }
  if (isAlive(workflow) && workflow.isPaused) return [called('paused', 'finds the workflow paused of')]
  // In `direct` the process makes what is overdue.
  const here = { ...state, tasks: without(state.tasks, task) }
  const isHere =
    context.options.hasOverdueAttempts && row.dueInMs <= 0 && state.runs.length < context.options.maxRuns
  const steps = isHere ? [pull(here, delivery, row.attempts + 1, context)] : []
  if (!isAlive(workflow))
    return [...steps, called('started', 'starts the workflow of', started(state, delivery, next))]
  if (row.isRequested) return [...steps, called('alive', 'signals the retry of', woken(state, delivery))]
  return [...steps, called('alive', 'finds the workflow alive of')]
}

function settle(state: State, task: SweepTask, { product }: Context): Step<State> {
  const { delivery, seenInMs, call } = task
  const tasks = without(state.tasks, task)
  const sweepIn = async (inMs: number | null, isPaused = false): Promise<State> => {
    const { image } = await product.sweepLater(state, { delivery, seenInMs, inMs, isPaused })
    return { ...state, image, tasks, happened: nothing }
  }
  const mark = async (left: State['tasks']): Promise<State> => {
    const { image } = await product.markStarted(state, delivery)
    return { ...state, image, tasks: left, happened: nothing }
  }
  return {
    kind: 'own',
    label: `the sweeper notes of D${delivery}: ${call}`,
    take: () => {
      switch (call) {
        // Its workflow goes on.
        case 'started':
        case 'none':
          return Promise.resolve({ ...state, tasks, happened: nothing })
        // It may wait, and is owed a signal from now on.
        case 'found':
          return mark(tasks)
        case 'followed':
          return mark(swap(state.tasks, task, { ...task, call: 'signalled' }))
        case 'signalled':
          return sweepIn(null)
        case 'alive':
          return sweepIn(ALIVE_INTERVAL_MS)
        case 'paused':
          return sweepIn(ALIVE_INTERVAL_MS, true)
      }
    },
  }
}

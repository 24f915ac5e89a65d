import { START_HOLD_MS } from '../../../src/deliveries/protocol/sweep.ts'
import type { Step } from '../explore.ts'
import { numberOf, type State, type Task } from '../state.ts'
import { newOwner, newRun, type Actor, type Context } from './context.ts'
import { refused } from './workflow.ts'

/** Processes that are about to start the workflow of one delivery. */
const MAX_HELD = 2

/** Takes up deliveries without a workflow from their rows: to attempt them, or to start their workflows. */
export const puller: Actor = (state, context) =>
  state.image.delivery.flatMap((row, delivery) => {
    const seenInMs = numberOf(row['sweep_at'])
    if (seenInMs >= 0 || row['completed_at'] !== null || row['workflow_started_at'] !== null) return []
    const { begins, maxRuns } = context.options
    const attempts = Number(row['attempts'])
    const steps: Step<State>[] = []
    if (!isOnlyByWorkflow(begins) && state.runs.length < maxRuns)
      steps.push(pull(state, delivery, attempts + 1, context))
    if (!begins.includes('workflow') && attempts === 0) return steps
    const held = state.tasks.filter((task) => task.kind === 'start' && task.delivery === delivery)
    if (held.length >= MAX_HELD) return steps
    const dueInMs = typeof row['next_attempt_at'] === 'number' ? row['next_attempt_at'] : 0
    steps.push({
      kind: 'own',
      label: `D${delivery} is held, to start its workflow`,
      take: async () => {
        const inMs = START_HOLD_MS
        const { image, result } = await context.product.sweepLater(state, {
          delivery,
          seenInMs,
          inMs,
          isPaused: false,
        })
        if (!result) return null
        const start: Task = { kind: 'start', delivery, inMs, number: attempts + 1, dueInMs, seenInMs: inMs }
        return { ...state, image, tasks: [...state.tasks, start], happened: { type: 'other' } }
      },
    })
    return steps
  })

const isOnlyByWorkflow = (begins: readonly string[]): boolean => begins.every((way) => way === 'workflow')

/** Claims an attempt that is made without a workflow. A delivery that its webhook does not take is stopped. */
export function pull(state: State, delivery: number, number: number, { product }: Context): Step<State> {
  const run = newRun({ owner: newOwner(state), delivery, number, by: 'process' })
  return {
    kind: 'own',
    label: `attempt ${number} of D${delivery} is pulled`,
    take: async () => {
      const { owner, by } = run
      const { image, result } = await product.claim(state, { owner, delivery, number, by })
      if (result === null) return refused(state, delivery, product)
      return { ...state, image, runs: [...state.runs, run], happened: { type: 'claimed', run } }
    },
  }
}

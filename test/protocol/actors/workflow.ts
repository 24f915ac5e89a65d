import type { Step } from '../explore.ts'
import { outcomeOf, type Product } from '../product.ts'
import { numberOf, replaceAt, rowOf, type State, type Workflow } from '../state.ts'
import { newOwner, newRun, type Actor, type Context } from './context.ts'
import { takes } from './webhook.ts'

/** Deferrals of an attempt without a slot. */
const DEFER_MS = 1_000

/** The workflows after the start of one, which changes nothing where it runs. */
export function started(
  state: State,
  delivery: number,
  { number, dueInMs }: { number: number; dueInMs: number },
): (Workflow | null)[] {
  if (isAlive(state.workflows[delivery])) return [...state.workflows]
  const phase = dueInMs > 0 ? 'sleep' : 'attempt'
  return replaceAt(state.workflows, delivery, {
    phase,
    number,
    inMs: Math.max(0, dueInMs),
    owner: null,
    outcome: null,
    isWoken: false,
    isPaused: false,
  })
}

export const isAlive = (workflow: Workflow | null | undefined): workflow is Workflow =>
  workflow !== null && workflow !== undefined && workflow.phase !== 'ended'

/** The workflows after a signal to one, which is lost where it does not run. */
export function woken(state: State, delivery: number): readonly (Workflow | null)[] {
  const workflow = state.workflows[delivery]
  return isAlive(workflow)
    ? replaceAt(state.workflows, delivery, { ...workflow, isWoken: true })
    : state.workflows
}

/** Stops the delivery of a claim that was refused since its webhook does not take it; null where nothing changes. */
export async function refused(state: State, delivery: number, product: Product): Promise<State | null> {
  const row = rowOf(state, delivery)!
  const isHeld = row['state'] === 'in_progress' && numberOf(row['lease_until']) >= 0
  if (row['completed_at'] !== null || isHeld || takes(state, delivery)) return null
  return { ...state, image: (await product.stop(state)).image, happened: { type: 'other' } }
}

/** The workflows, and the activities that they have workers run. Temporal may take its time for each step. */
export const workflows: Actor = (state, context) =>
  state.workflows.flatMap((workflow, delivery) => {
    if (workflow === null || workflow.phase === 'ended') return []
    const steps: Step<State>[] = []
    const change = (label: string, changes: Partial<Workflow>): void => {
      steps.push({
        kind: 'own',
        label: `the workflow of D${delivery} ${label}`,
        take: () =>
          Promise.resolve({
            ...state,
            workflows: replaceAt(state.workflows, delivery, { ...workflow, ...changes }),
            happened: { type: 'other' },
          }),
      })
    }
    const isRunnable = !workflow.isPaused
    if (workflow.phase === 'sleep' && isRunnable && (workflow.isWoken || workflow.inMs <= 0))
      change(`requests attempt ${workflow.number}`, { phase: 'attempt', isWoken: false, inMs: 0 })
    if (workflow.phase === 'answered' && isRunnable) proceed(workflow, change)
    // A paused workflow starts no activity, and one that was started goes on.
    if (workflow.phase === 'attempt' && workflow.owner === null) {
      if (context.options.hasDeferrals) change('has its attempt deferred', { phase: 'sleep', inMs: DEFER_MS })
      if (state.runs.length < context.options.maxRuns) steps.push(claim(state, delivery, workflow, context))
    }
    return steps
  })

/** Goes on with the outcome of an attempt. */
function proceed(workflow: Workflow, change: (label: string, changes: Partial<Workflow>) => void): void {
  const outcome = workflow.outcome!
  const { state, attempts, dueInMs } = outcome
  if (state === 'waiting') {
    const number = attempts + 1
    return change(`waits for attempt ${number}`, {
      phase: 'sleep',
      number,
      inMs: Math.max(0, dueInMs),
      outcome: null,
    })
  }
  if (workflow.isWoken && state !== 'completed')
    return change('requests the attempt after its end, since it was woken', {
      phase: 'attempt',
      number: attempts + 1,
      isWoken: false,
      outcome: null,
      inMs: 0,
    })
  change('ends', { phase: 'ended', outcome: null, isWoken: false, inMs: 0, number: 0 })
}

/** Has a worker claim the attempt. A refused claim answers how the row stands. */
function claim(state: State, delivery: number, workflow: Workflow, { product }: Context): Step<State> {
  const { number } = workflow
  const run = newRun({ owner: newOwner(state), delivery, number, by: 'worker' })
  return {
    kind: 'own',
    label: `a worker claims attempt ${number} of D${delivery}`,
    take: async () => {
      const { owner, by } = run
      const { image, result } = await product.claim(state, { owner, delivery, number, by })
      if (result !== null) {
        const running = replaceAt(state.workflows, delivery, { ...workflow, owner })
        return {
          ...state,
          image,
          workflows: running,
          runs: [...state.runs, run],
          happened: { type: 'claimed', run },
        }
      }
      const answered = (next: State): State => ({
        ...next,
        workflows: replaceAt(state.workflows, delivery, {
          ...workflow,
          phase: 'answered',
          outcome: outcomeOf(next, delivery),
        }),
        happened: { type: 'other' },
      })
      const stopped = await refused(state, delivery, product)
      if (stopped !== null) return answered(stopped)
      const row = rowOf(state, delivery)!
      const isHeld = row['state'] === 'in_progress' && row['attempts'] === number - 1
      // Another run has it: the activity tries again.
      return isHeld ? null : answered(state)
    },
  }
}

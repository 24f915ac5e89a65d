import type { Step } from '../explore.ts'
import { replaceAt, rowOf, swap, without, type Run, type State, type Task } from '../state.ts'
import { TASK_MS, type Actor, type Context } from './context.ts'

/** After so many lost runs the attempt is recorded as failed, and not sent. */
const MAX_LOST_RUNS = 5

/** A POST ends within this time. */
const POST_TIMEOUT_MS = 10_000

/** Recording that takes longer renews the lease. */
const RENEW_MS = 1_000

/** The runs of attempts: claimed → posting → sent → recorded → reported. */
export const runs: Actor = (state, context) => state.runs.flatMap((run) => stepsOf(run, state, context))

function stepsOf(run: Run, state: State, context: Context): Step<State>[] {
  const { product, options } = context
  const { delivery, number, by, phase } = run
  const name = by === 'worker' ? 'a worker' : 'the process'
  const become = (changes: Partial<Run>): readonly Run[] => swap(state.runs, run, { ...run, ...changes })
  switch (phase) {
    case 'claimed': {
      const row = rowOf(state, delivery)!
      const isLost = row['owner'] === run.owner && Number(row['runs']) > MAX_LOST_RUNS
      if (isLost)
        return [
          {
            kind: 'own',
            label: `${name} gives attempt ${number} of D${delivery} up after ${MAX_LOST_RUNS} lost runs`,
            take: () =>
              Promise.resolve({
                ...state,
                runs: become({ phase: 'sent', hasSucceeded: false, inMs: 0 }),
                happened: { type: 'other' },
              }),
          },
        ]
      const begin: Step<State> = {
        kind: 'own',
        label: `${name} begins the POST of attempt ${number} of D${delivery}`,
        take: () => {
          // A process that was stalled checks the time before it POSTs.
          if (run.isStalled && run.inMs <= 0) return Promise.resolve(null)
          const posts = Math.min(MAX_LOST_RUNS + 1, state.posts[delivery]! + 1)
          const runs = become({ phase: 'posting', inMs: POST_TIMEOUT_MS })
          return Promise.resolve({
            ...state,
            runs,
            posts: replaceAt(state.posts, delivery, posts),
            happened: { type: 'began', run },
          })
        },
      }
      return [begin, giveBack(state, run, false, `${name} releases D${delivery}`, context)]
    }
    case 'posting': {
      const answer = (hasSucceeded: boolean): Step<State> => ({
        kind: 'own',
        label: `the POST of attempt ${number} of D${delivery} ${hasSucceeded ? 'is confirmed' : 'fails'}`,
        take: () =>
          Promise.resolve({
            ...state,
            runs: become({ phase: 'sent', hasSucceeded, inMs: options.hasSlowRecording ? RENEW_MS : 0 }),
            happened: { type: 'other' },
          }),
      })
      const answers = number < options.maxAttempts ? [answer(true), answer(false)] : [answer(true)]
      // A process that was paused during its POST has no outcome.
      const cutOff = `${name} was paused during the POST of D${delivery}, and releases it`
      return run.isStalled ? [...answers, giveBack(state, run, true, cutOff, context)] : answers
    }
    case 'sent': {
      const record: Step<State> = {
        kind: 'own',
        label: `${name} records attempt ${number} of D${delivery}: ${run.hasSucceeded ? 'succeeded' : 'failed'}`,
        take: async () => {
          const { image, result: outcome } = await product.record(state, run)
          const attempts = Number(rowOf({ image }, delivery)!['attempts'])
          const hasMoved = attempts !== Number(rowOf(state, delivery)!['attempts'])
          const posts = hasMoved ? replaceAt(state.posts, delivery, 0) : state.posts
          const happened = { type: 'recorded', run, outcome } as const
          // Its failure does not count: it goes back to its claim, where the row is another's.
          if (outcome === null)
            return freed({ ...state, image, posts, runs: without(state.runs, run), happened }, run)
          return { ...state, image, posts, runs: become({ phase: 'recorded', outcome, inMs: 0 }), happened }
        },
      }
      if (!options.hasSlowRecording) return [record]
      const renew: Step<State> = {
        kind: 'own',
        label: `${name} renews its lease of D${delivery}`,
        take: async () => {
          if (run.inMs > RENEW_MS / 2) return null
          const { image } = await product.renew(state, run)
          return { ...state, image, runs: become({ inMs: RENEW_MS }), happened: { type: 'renewed', run } }
        },
      }
      return [record, renew]
    }
    case 'recorded':
      return [
        {
          kind: 'own',
          label: `${name} reports attempt ${number} of D${delivery}`,
          take: () => Promise.resolve(report(state, run)),
        },
      ]
  }
}

/** Signals the outcome to the workflow, or, without one, is about to start it for the next attempt. */
function report(state: State, run: Run): State {
  const { delivery, owner } = run
  const outcome = run.outcome!
  const next: State = { ...state, runs: without(state.runs, run), happened: { type: 'reported', run } }
  const workflow = state.workflows[delivery]
  if (run.by === 'worker') {
    // Temporal refuses the report of an activity that it has given to another worker.
    if (workflow?.owner !== owner) return next
    const answered = { ...workflow, phase: 'answered' as const, owner: null, outcome }
    return { ...next, workflows: replaceAt(state.workflows, delivery, answered) }
  }
  if (outcome.state !== 'waiting') return next
  const { attempts, dueInMs } = outcome
  const start: Task = {
    kind: 'start',
    delivery,
    inMs: TASK_MS,
    number: attempts + 1,
    dueInMs,
    seenInMs: null,
  }
  return { ...next, tasks: [...state.tasks, start] }
}

/** The activity, if there is one, is run again by another worker. */
function freed(state: State, { delivery, owner }: Run): State {
  const workflow = state.workflows[delivery]
  if (workflow?.owner !== owner) return state
  return { ...state, workflows: replaceAt(state.workflows, delivery, { ...workflow, owner: null }) }
}

function giveBack(
  state: State,
  run: Run,
  hasPosted: boolean,
  label: string,
  { product }: Context,
): Step<State> {
  return {
    kind: 'own',
    label,
    take: async () => {
      const { image } = await product.release(state, run, hasPosted)
      const next: State = {
        ...state,
        image,
        runs: without(state.runs, run),
        happened: { type: 'gave_back', run, hasPosted },
      }
      return freed(next, run)
    },
  }
}

/** What may go wrong with the process of a run. */
export const faultsOfRuns: Actor = (state, context) =>
  state.runs.flatMap((run) => {
    const { options } = context
    const { delivery, number, phase, by } = run
    const faultsLeft = state.faultsLeft - 1
    if (faultsLeft < 0) return []
    const steps: Step<State>[] = []
    const subject = `the process of attempt ${number} of D${delivery} (${by}, ${phase})`
    if (options.faults.includes('crash'))
      steps.push({
        kind: 'fault',
        label: `${subject} is killed`,
        take: () =>
          Promise.resolve(
            freed({ ...state, runs: without(state.runs, run), faultsLeft, happened: { type: 'other' } }, run),
          ),
      })
    if (options.faults.includes('stall') && !run.isStalled && phase !== 'recorded') {
      const runs = swap(state.runs, run, { ...run, isStalled: true })
      const stalled: State = { ...state, runs, faultsLeft, happened: { type: 'other' } }
      steps.push({
        kind: 'fault',
        label: `${subject} is paused`,
        take: () => Promise.resolve(freed(stalled, run)),
      })
    }
    if (options.faults.includes('stop') && phase === 'posting')
      steps.push({
        ...giveBack(
          { ...state, faultsLeft },
          run,
          true,
          `${subject} is stopped, and cuts its POST off`,
          context,
        ),
        kind: 'fault',
      })
    return steps
  })

/** Within which time each process goes on by itself. */
export function boundOfRuns(state: State): number {
  return Math.min(...state.runs.filter(({ isStalled }) => !isStalled).map(({ inMs }) => Math.max(0, inMs)))
}

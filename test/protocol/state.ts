import { deliveryId, LONG_AGO_MS, shiftImage, type Image, type Row } from './image.ts'

/** How an attempt ended, or how the row stands where none was made. */
export type Outcome = {
  state: 'waiting' | 'completed' | 'failed' | 'stopped'
  attempts: number
  dueInMs: number
}

/**
 * A run of an attempt in the memory of its process. `inMs`: within which time the process goes on, unless it is stalled:
 * begins its POST (`claimed`), has its end (`posting`), records it or renews its lease (`sent`), reports it (`recorded`).
 */
export type Run = {
  owner: string
  delivery: number
  number: number
  by: 'process' | 'worker'
  phase: 'claimed' | 'posting' | 'sent' | 'recorded'
  hasSucceeded: boolean
  outcome: Outcome | null
  inMs: number
  isStalled: boolean
}

/** The workflow of a delivery as it exists for Temporal; `owner` is the run of its activity. */
export type Workflow = {
  phase: 'attempt' | 'answered' | 'sleep' | 'ended'
  number: number
  inMs: number
  owner: string | null
  outcome: Outcome | null
  isWoken: boolean
  isPaused: boolean
}

/** What a process is about to do, and forgets when it dies. */
export type Task =
  /**
   * Starts the workflow with attempt `number`, which is due in `dueInMs`, and marks it. `seenInMs`: `sweep_at` of a row
   * that is left to this process meanwhile.
   */
  | {
      kind: 'start'
      delivery: number
      inMs: number
      number: number
      dueInMs: number
      seenInMs: number | null
    }
  | { kind: 'mark'; delivery: number; inMs: number }
  /** Signals the workflow that a retry is requested, or starts it after so many attempts. */
  | { kind: 'wake'; delivery: number; inMs: number; attempts: number }
  | SweepTask

/** The sweeper has taken a row (`taken`), and called Temporal (`called`). */
export type SweepTask = {
  kind: 'sweep'
  delivery: number
  inMs: number
  phase: 'taken' | 'called'
  /** `sweep_at` as it was set. */
  seenInMs: number
  row: { state: string; attempts: number; hasWorkflow: boolean; isRequested: boolean; dueInMs: number }
  call: 'none' | 'started' | 'found' | 'followed' | 'alive' | 'paused' | 'signalled'
}

/** What the last step did, for the rules; no part of a state. */
type Happening =
  | { type: 'other' }
  | { type: 'claimed' | 'began' | 'renewed' | 'reported'; run: Run }
  | { type: 'gave_back'; run: Run; hasPosted: boolean }
  | { type: 'recorded'; run: Run; outcome: Outcome | null }
  | {
      type: 'retried' | 'discarded' | 'deleted' | 'committed' | 'switched' | 'erased' | 'stopped_erased'
      delivery: number
    }

export type State = {
  image: Image
  runs: readonly Run[]
  workflows: readonly (Workflow | null)[]
  tasks: readonly Task[]
  /**
   * For how long the webhook has not taken each delivery that a run has claimed; null while it does. Stops counting after
   * a second.
   */
  unwantedForMs: readonly (number | null)[]
  /** POSTs of the next attempt of each delivery that may have been sent. */
  posts: readonly number[]
  faultsLeft: number
  happened: Happening
}

/** From when on it makes no difference for how long a webhook is off. */
export const UNWANTED_FOR_LONG_MS = 1_001

export function rowOf(state: Pick<State, 'image'>, delivery: number): Row | undefined {
  const id = deliveryId(delivery)
  return state.image.delivery.find((row) => row['id'] === id)
}

/** Null stands for no limit. */
export const numberOf = (value: unknown): number => (typeof value === 'number' ? value : Infinity)

export function replaceAt<T>(list: readonly T[], index: number, value: T): T[] {
  const copy = [...list]
  copy[index] = value
  return copy
}

export const without = <T>(list: readonly T[], value: T): T[] => list.filter((other) => other !== value)

export const swap = <T>(list: readonly T[], value: T, by: T): T[] =>
  list.map((other) => (other === value ? by : other))

/** Adds what a process is about to do. Twice the same has the effect of once, but for starts and sweeps. */
export function withTask(tasks: readonly Task[], task: Task): Task[] {
  const isSame = (other: Task): boolean => other.kind === task.kind && other.delivery === task.delivery
  const kept = task.kind === 'mark' || task.kind === 'wake' ? tasks.filter((other) => !isSame(other)) : tasks
  return [...kept, task]
}

/** Lets time pass: every instant comes nearer. */
export function elapse(state: State, ms: number): State {
  const swept = new Set(state.tasks.flatMap((task) => ('seenInMs' in task ? [task.delivery] : [])))
  const nearer = (inMs: number): number => Math.max(LONG_AGO_MS, inMs - ms)
  const outcomeLater = (outcome: Outcome | null): Outcome | null =>
    outcome === null ? null : { ...outcome, dueInMs: nearer(outcome.dueInMs) }
  return {
    ...state,
    image: shiftImage(state.image, ms, (row) =>
      [...swept].some((delivery) => row['id'] === deliveryId(delivery)),
    ),
    runs: state.runs.map((run) => ({ ...run, inMs: nearer(run.inMs), outcome: outcomeLater(run.outcome) })),
    workflows: state.workflows.map(
      (workflow) =>
        workflow && { ...workflow, inMs: nearer(workflow.inMs), outcome: outcomeLater(workflow.outcome) },
    ),
    tasks: state.tasks.map((task) => elapsedTask(task, ms)),
    unwantedForMs: state.unwantedForMs.map((forMs) =>
      forMs === null ? null : Math.min(UNWANTED_FOR_LONG_MS, forMs + ms),
    ),
    happened: { type: 'other' },
  }
}

function elapsedTask(task: Task, ms: number): Task {
  const nearer = (value: number): number => Math.max(LONG_AGO_MS, value - ms)
  const inMs = nearer(task.inMs)
  switch (task.kind) {
    case 'start': {
      const seenInMs = task.seenInMs === null ? null : task.seenInMs - ms
      return { ...task, inMs, dueInMs: nearer(task.dueInMs), seenInMs }
    }
    case 'sweep':
      return {
        ...task,
        inMs,
        seenInMs: task.seenInMs - ms,
        row: { ...task.row, dueInMs: nearer(task.row.dueInMs) },
      }
    case 'mark':
    case 'wake':
      return { ...task, inMs }
  }
}

import type { Step } from '../explore.ts'
import type { Product } from '../product.ts'
import type { Run, State } from '../state.ts'

/** What may happen in a configuration. Each switch that is off makes the state space smaller. */
export type Options = {
  deliveries: number
  /** Attempts that are recorded before the exploration begins. */
  firstAttempts: number
  /** Attempts from this number on succeed, and no retry is requested after it. */
  maxAttempts: number
  /** How the first attempt comes about: in the process that commits, by a workflow, or pulled from the row. */
  begins: readonly ('inline' | 'workflow' | 'pulled')[]
  users: readonly ('switch' | 'narrow' | 'retry' | 'discard' | 'delete' | 'erase')[]
  faults: readonly ('crash' | 'stall' | 'stop' | 'terminate' | 'pause' | 'wipe')[]
  /** Faults of one trace; Infinity where the rows bound them. */
  maxFaults: number
  /** Runs in memory at once. */
  maxRuns: number
  /** The sweeper makes overdue attempts (`direct`). */
  hasOverdueAttempts: boolean
  hasDeferrals: boolean
  hasSlowRecording: boolean
  /** `overflow`: deliveries that end without a workflow are owed one. */
  followAfterMs: number | null
}

export type Context = { product: Product; options: Options }

/** The steps of one actor. */
export type Actor = (state: State, context: Context) => Step<State>[]

/** Ids of runs. A new run takes the first that neither a process nor a row knows. */
const OWNERS = [1, 2, 3, 4, 5, 6].map((place) => `00000000-0000-4000-8000-00000000000${place}`)

export function newOwner(state: State): string {
  const known = (owner: string): boolean =>
    state.runs.some((run) => run.owner === owner) ||
    state.workflows.some((workflow) => workflow?.owner === owner) ||
    state.image.delivery.some((row) => row['owner'] === owner)
  return OWNERS.find((owner) => !known(owner))!
}

/** Time within which a process begins a POST that it has claimed. */
const BEGIN_MS = 1_000

/** A process does at once what it is about to do: no time passes before, but anything else may happen. */
export const TASK_MS = 0

export function newRun(run: Pick<Run, 'owner' | 'delivery' | 'number' | 'by'>): Run {
  return { ...run, phase: 'claimed', hasSucceeded: false, outcome: null, inMs: BEGIN_MS, isStalled: false }
}

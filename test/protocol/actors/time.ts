import { elapse, numberOf, UNWANTED_FOR_LONG_MS, type State } from '../state.ts'
import { boundOfRuns } from './runs.ts'
import type { Actor } from './context.ts'

/** A claim may be so much too early, and is refused just before that. */
const JUST_BEFORE_MS = 4

/** Lets time pass until just before the next instant, where that may make a difference, and then until just after it. */
export const time: Actor = (state) => {
  const sharp = sharpInstantsOf(state)
  const atMs = Math.min(...[...sharp, ...instantsOf(state)].filter((inMs) => inMs >= 0))
  if (atMs === Infinity) return []
  // A process that is neither killed nor paused does in time what it is about to do.
  const boundMs = Math.min(boundOfRuns(state), ...state.tasks.map(({ inMs }) => Math.max(0, inMs)))
  const isJustBefore = atMs > JUST_BEFORE_MS && sharp.includes(atMs)
  const ms = isJustBefore ? atMs - JUST_BEFORE_MS : Math.min(atMs + 1, boundMs)
  if (ms > boundMs || ms <= 0) return []
  return [{ kind: 'time', label: `${ms} ms pass`, take: () => Promise.resolve(elapse(state, ms)) }]
}

/** Instants that statements and processes compare exactly, in ms from now. */
function sharpInstantsOf(state: State): number[] {
  return [
    ...state.image.delivery.flatMap((row) => [
      positive(row['next_attempt_at']),
      numberOf(row['lease_until']),
    ]),
    ...state.runs.map(({ phase, inMs }) => (phase === 'claimed' ? positive(inMs) : Infinity)),
    ...state.unwantedForMs.map((forMs) => (forMs === null ? Infinity : UNWANTED_FOR_LONG_MS - forMs)),
  ]
}

/** Others. */
function instantsOf(state: State): number[] {
  return [
    ...state.image.delivery.map((row) => numberOf(row['sweep_at'])),
    ...state.runs.map(({ inMs }) => positive(inMs)),
    ...state.tasks.map(({ inMs }) => positive(inMs)),
    ...state.workflows.map((workflow) => (workflow?.phase === 'sleep' ? positive(workflow.inMs) : Infinity)),
  ]
}

/** What is reached at its instant, not only after it. */
const positive = (inMs: unknown): number => (numberOf(inMs) > 0 ? numberOf(inMs) : Infinity)

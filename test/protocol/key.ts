import { MOVING, type Row } from './image.ts'
import { numberOf, type Outcome, type State, type Task } from './state.ts'

/** An instant so near is told apart: a claim may be that much too early. */
const NEAR_MS = 4

type Rename = { instant: (inMs: unknown) => unknown; owner: (id: unknown) => unknown }

/**
 * Returns the key of a state. Two states that differ only in instants of the same order are one; what has passed has
 * passed. Ids of runs count by the order in which they appear.
 */
export function keyOf(state: State): string {
  const { image, runs, workflows, tasks, unwantedForMs, posts, faultsLeft } = state
  const rename = { instant: rankInstants(state), owner: numberOwners() }
  const { instant, owner } = rename
  const outcomeKey = (outcome: Outcome | null): unknown =>
    outcome && [outcome.state, outcome.attempts, instant(outcome.dueInMs)]
  return JSON.stringify([
    image.webhook.map((row) => [row['enabled'], row['deleted_at'], row['subscribed_event_keys']]),
    image.delivery.map((row) => rowKey(row, rename)),
    image.attempt,
    image.incident,
    runs.map((run) => {
      const { delivery, number, by, phase, hasSucceeded, isStalled } = run
      const known = [delivery, number, by, phase, hasSucceeded, isStalled]
      return [...known, owner(run.owner), outcomeKey(run.outcome), instant(run.inMs)]
    }),
    workflows.map((workflow) => {
      if (workflow === null) return null
      const { phase, number, isWoken, isPaused } = workflow
      const known = [phase, number, isWoken, isPaused]
      return [...known, owner(workflow.owner), outcomeKey(workflow.outcome), instant(workflow.inMs)]
    }),
    // Each is of a process of its own.
    tasks.map((task) => JSON.stringify(taskKey(task, state, rename))).sort(),
    unwantedForMs.map((forMs) => (forMs === null ? null : instant(UNWANTED_MS - forMs))),
    posts,
    faultsLeft,
  ])
}

/** Any instant after those for which a webhook has been off. */
const UNWANTED_MS = 1_001

function rowKey(row: Row, { instant, owner }: Rename): unknown {
  return Object.entries(row).map(([column, value]) => {
    if (column === 'owner') return owner(value)
    return (MOVING as readonly string[]).includes(column) ? instant(value) : value
  })
}

function taskKey(task: Task, { image }: State, { instant }: Rename): unknown {
  const known = [task.kind, task.delivery, instant(task.inMs)]
  // Of `sweep_at` as it was seen matters whether it still is.
  const isSeen = (seenInMs: number | null): boolean =>
    image.delivery[task.delivery]?.['sweep_at'] === seenInMs
  switch (task.kind) {
    case 'start':
      return [...known, task.number, instant(task.dueInMs), isSeen(task.seenInMs)]
    case 'mark':
      return known
    case 'wake':
      return [...known, task.attempts]
    case 'sweep':
      return [
        ...known,
        task.phase,
        task.call,
        isSeen(task.seenInMs),
        { ...task.row, dueInMs: instant(task.row.dueInMs) },
      ]
  }
}

function numberOwners(): Rename['owner'] {
  const owners: unknown[] = [null]
  return (id) => {
    if (!owners.includes(id)) owners.push(id)
    return owners.indexOf(id)
  }
}

function dueInMsOf(task: Task): number {
  if (task.kind === 'start') return task.dueInMs
  return task.kind === 'sweep' ? task.row.dueInMs : 0
}

function rankInstants(state: State): Rename['instant'] {
  const instants = [
    ...state.image.delivery.flatMap((row) => MOVING.map((column) => numberOf(row[column]))),
    ...state.runs.flatMap(({ inMs, outcome }) => [inMs, outcome?.dueInMs ?? 0]),
    ...state.workflows.flatMap((workflow) => [workflow?.inMs ?? 0, workflow?.outcome?.dueInMs ?? 0]),
    ...state.tasks.flatMap((task) => [task.inMs, dueInMsOf(task)]),
    ...state.unwantedForMs.map((forMs) => (forMs === null ? 0 : UNWANTED_MS - forMs)),
  ].filter((inMs) => inMs > NEAR_MS && inMs < Infinity)
  const sorted = [...new Set(instants)].sort((one, other) => one - other)
  return (value) => {
    if (typeof value !== 'number') return value
    if (value <= NEAR_MS) return Math.max(-1, value)
    return NEAR_MS + 1 + sorted.indexOf(value)
  }
}

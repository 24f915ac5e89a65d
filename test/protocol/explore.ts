import { createHash } from 'node:crypto'

/**
 * A way on from a state. `take` returns the state after it, or null where it turns out to be impossible. `kind`: a step
 * that always follows by itself (`own`), time that passes, what users and endpoints may do, or a fault.
 */
export type Step<State> = {
  label: string
  kind: 'own' | 'time' | 'user' | 'fault'
  take: () => Promise<State | null>
}

export type Model<State> = {
  initial: State
  steps: (state: State) => Step<State>[]
  /** Equal for states that differ in nothing that matters. */
  key: (state: State) => string
  /** Returns what is wrong with the step. */
  check: (before: State, step: Step<State>, after: State) => string[]
  /** Everything has come to its end. From every state this is reached by steps that follow by themselves. */
  isSettled: (state: State) => boolean
}

type Violation = { rule: string; trace: string[] }

export type Exploration = {
  states: number
  steps: number
  depth: number
  /** All reachable states were reached. */
  isComplete: boolean
  violations: Violation[]
}

export type Limits = {
  maxDepth?: number
  maxStates?: number
  deadlineMs?: number
  /** Ends at so many broken rules; each is reported with the shortest way to it. */
  maxViolations?: number
}

/**
 * Takes every step from every state that is reachable, breadth first: the trace of a broken rule is the shortest there
 * is, and a stated depth is exact. A state that breaks a rule is not continued. Where everything was reached, each state
 * must lead to a settled one by steps that follow by themselves.
 */
export async function explore<State>(model: Model<State>, limits: Limits = {}): Promise<Exploration> {
  const { maxDepth = Infinity, maxStates = Infinity, deadlineMs = Infinity, maxViolations = 1 } = limits
  const ids = new Map<string, number>([[hashOf(model.key(model.initial)), 0]])
  const violations = new Map<string, Violation>()
  // Of each state the one it was reached from, and by which step.
  const cameFrom: { parent: number; label: string }[] = [{ parent: -1, label: '' }]
  const graph = createGraph()
  let frontier: { id: number; state: State }[] = [{ id: 0, state: model.initial }]
  let [steps, depth] = [0, 0]

  const traceTo = (id: number): string[] => {
    const trace: string[] = []
    for (let at = id; at > 0; at = cameFrom[at]!.parent) trace.unshift(cameFrom[at]!.label)
    return trace
  }
  const note = (rule: string, trace: string[]): void => {
    if (!violations.has(rule)) violations.set(rule, { rule, trace })
  }
  const isOver = (): boolean =>
    violations.size >= maxViolations || ids.size >= maxStates || performance.now() >= deadlineMs

  async function expand(id: number, state: State, next: typeof frontier): Promise<void> {
    if (model.isSettled(state)) graph.settle(id)
    for (const step of model.steps(state)) {
      const after = await takeStep(step, (rule) => note(rule, [...traceTo(id), step.label]))
      if (after === null) continue
      steps++
      const broken = model.check(state, step, after)
      for (const rule of broken) note(rule, [...traceTo(id), step.label])
      if (broken.length > 0) continue
      const key = hashOf(model.key(after))
      const known = ids.get(key)
      const to = known ?? ids.size
      if (step.kind === 'own' || step.kind === 'time') graph.connect(id, to)
      if (known !== undefined) continue
      ids.set(key, to)
      next.push({ id: to, state: after })
      cameFrom.push({ parent: id, label: step.label })
    }
  }

  while (frontier.length > 0 && depth < maxDepth && !isOver()) {
    const next: typeof frontier = []
    for (const { id, state } of frontier) {
      if (isOver()) break
      await expand(id, state, next)
    }
    if (next.length > 0) depth++
    frontier = isOver() ? [...next, ...frontier] : next
  }
  const isComplete = frontier.length === 0 && violations.size === 0
  if (isComplete) {
    const stuck = graph.firstStuck(ids.size)
    if (stuck !== null) note('every delivery comes to its end by itself', traceTo(stuck))
  }
  return { states: ids.size, steps, depth, isComplete, violations: [...violations.values()] }
}

/** Which states follow each other by themselves. */
function createGraph() {
  const before: number[][] = []
  const settled: number[] = []
  return {
    connect: (from: number, to: number): void => void (before[to] ??= []).push(from),
    settle: (id: number): void => void settled.push(id),
    /** Returns the first of `count` states that leads to no settled one. */
    firstStuck(count: number): number | null {
      const reaches = new Uint8Array(count)
      const open = [...settled]
      for (const id of settled) reaches[id] = 1
      for (let id = open.pop(); id !== undefined; id = open.pop())
        for (const from of before[id] ?? [])
          if (reaches[from] === 0) {
            reaches[from] = 1
            open.push(from)
          }
      const stuck = reaches.indexOf(0)
      return stuck === -1 ? null : stuck
    },
  }
}

/** What a step must not do, found in the middle of it. */
export class BrokenRule extends Error {}

/** A statement that violates a constraint breaks a rule too; any other error is a fault of the explorer. */
async function takeStep<State>(step: Step<State>, onBroken: (rule: string) => void): Promise<State | null> {
  try {
    return await step.take()
  } catch (error) {
    if (!(error instanceof BrokenRule) && !isConstraintViolation(error)) throw error
    onBroken((error as Error).message)
    return null
  }
}

/** SQLSTATE class 23. */
function isConstraintViolation(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('23')
}

function hashOf(key: string): string {
  return createHash('sha1').update(key).digest('base64').slice(0, 20)
}

import { setTimeout as delay } from 'node:timers/promises'
import type { SteppedSession, Rewrite, Work } from './stepped-session.ts'

export type Step = { session: string; name: string }

/** How sessions were interleaved, and what came of it. */
export type Permutation<Result> = {
  /** In the order in which they began. */
  steps: readonly Step[]
  /** Those of them that waited for a lock. */
  waited: readonly Step[]
  results: Readonly<Record<string, PromiseSettledResult<Result>>>
}

/** The sessions, by name, and what is done between their steps. */
export type Stage<Result> = {
  sessions: Readonly<Record<string, SteppedSession<Result>>>
  /** Resolves when a session came to its next step, or ended. */
  changed(): Promise<void>
  /** Restores the rows from which each permutation begins. */
  reset(): Promise<void>
  tick(): Promise<void>
  /** For each of these sessions of PostgreSQL those that it waits for. */
  blockers(pids: readonly number[]): Promise<ReadonlyMap<number, readonly number[]>>
}

export type Options<Result> = {
  works: Readonly<Record<string, Work<Result>>>
  /** `session` is its name. */
  rewrite?: (session: string) => Rewrite
  /** The sessions whose steps come first, in this order. */
  first?: readonly string[]
  /** Only permutations in which no transaction begins while another is open. */
  isSerial?: boolean
}

/** A choice between the sessions that can go on. */
type Choice = { among: readonly string[]; chosen: number }

const POLL_MS = 1

/** A deadlock is found by PostgreSQL long before. */
const STEP_TIMEOUT_MS = 10_000

/**
 * Runs all permutations of the steps of several sessions, depth first, each from the beginning: where a step waits for a
 * lock, the other sessions go on, as PostgreSQL's isolation tester has them.
 */
export async function* permute<Result>(
  stage: Stage<Result>,
  options: Options<Result>,
): AsyncGenerator<Permutation<Result>> {
  const choices: Choice[] = []
  do {
    yield await runOnce(stage, options, choices)
    while (choices.length > 0 && choices.at(-1)!.chosen === choices.at(-1)!.among.length - 1) choices.pop()
    if (choices.length > 0) choices.at(-1)!.chosen++
  } while (choices.length > 0)
}

/** Follows `choices`, and then takes the first session each time, which it adds to them. */
async function runOnce<Result>(
  stage: Stage<Result>,
  options: Options<Result>,
  choices: Choice[],
): Promise<Permutation<Result>> {
  const { works, rewrite = () => (_, statement) => statement, first = [], isSerial = false } = options
  const sessions = Object.fromEntries(Object.keys(works).map((name) => [name, stage.sessions[name]!]))
  const names = Object.keys(sessions)
  const steps: Step[] = []
  const waited: Step[] = []
  await stage.reset()
  for (const name of names) sessions[name]!.begin(works[name]!, rewrite(name))
  await settle(stage, Object.values(sessions), steps)
  for (let depth = 0; ;) {
    const ready = names.filter((name) => sessions[name]!.standing() === 'ready')
    if (ready.length === 0) break
    const inTransaction = isSerial ? ready.filter((name) => sessions[name]!.isInTransaction()) : []
    const forced = ready.filter((name) => name === first[steps.length])
    const among = [forced, inTransaction, ready].find((found) => found.length > 0)!
    choices[depth] ??= { among, chosen: 0 }
    const { chosen } = choices[depth++]!
    const name = among[Math.min(chosen, among.length - 1)]!
    const step = { session: name, name: sessions[name]!.step() }
    steps.push(step)
    await stage.tick()
    sessions[name]!.go()
    await settle(stage, Object.values(sessions), steps)
    if (sessions[name]!.standing() === 'running') waited.push(step)
  }
  return {
    steps,
    waited,
    results: Object.fromEntries(names.map((name) => [name, sessions[name]!.ended()])),
  }
}

/** Waits until each session is before its next step, has ended, or waits for one that is. */
async function settle<Result>(
  stage: Stage<Result>,
  sessions: readonly SteppedSession<Result>[],
  steps: readonly Step[],
): Promise<void> {
  const deadlineMs = performance.now() + STEP_TIMEOUT_MS
  for (;;) {
    const running = sessions.filter((session) => session.standing() === 'running')
    if (running.length === 0) return
    const hasChanged = await Promise.race([stage.changed().then(() => true), delay(POLL_MS, false)])
    if (hasChanged) continue
    const blockers = await stage.blockers(running.map(({ pid }) => pid))
    // Otherwise the answer may be older than where the sessions stand.
    const isUnchanged = running.every((session) => session.standing() === 'running')
    const ready = new Set(sessions.filter((session) => session.standing() === 'ready').map(({ pid }) => pid))
    if (isUnchanged && running.every(({ pid }) => isStuck(pid, blockers, ready))) return
    if (performance.now() > deadlineMs)
      throw new Error(`a step neither ends nor waits: ${JSON.stringify(steps)}`)
  }
}

/**
 * Waits for a session that is before its next step, directly or behind others. False in a deadlock, which PostgreSQL
 * ends, and behind a session that has ended, whose locks PostgreSQL is about to release.
 */
function isStuck(
  pid: number,
  blockers: ReadonlyMap<number, readonly number[]>,
  ready: ReadonlySet<number>,
  behind: readonly number[] = [],
): boolean {
  const before = blockers.get(pid) ?? []
  if (before.length === 0 || behind.includes(pid)) return false
  return before.every((other) => ready.has(other) || isStuck(other, blockers, ready, [...behind, pid]))
}

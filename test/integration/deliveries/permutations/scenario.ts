import type { Rewrite } from './stepped-session.ts'
import { didOf, type AllDid, type Did, type Left } from './outcome.ts'
import { permute, type Permutation, type Step } from './permute.ts'
import type { Rows } from './rows.ts'
import { brokenRules, isDeadlock } from './rules.ts'
import type { Session } from './sessions/session.ts'
import type { DatabaseStage } from './use-stage.ts'

/** Sessions that meet, and the rows they meet at. */
export type Scenario = {
  /** A promise. */
  title: string
  rows: Rows
  sessions: Readonly<Record<string, Session>>
  /** The sessions whose steps come first, in this order. */
  first?: readonly string[]
  /** What follows in any case, before the rows are compared: they may be left in another state until then. */
  afterwards?: Session
  /** PostgreSQL may end one session, which does its work again. */
  mayDeadlock?: boolean
  /** A batch of claims passes over single rows: each row is compared by itself. */
  isRowByRow?: boolean
}

/** Changes statements of a session on their way to PostgreSQL. */
export type Mutation = (session: string) => Rewrite

/** The rules that a permutation breaks, and its steps. */
export type Broken = { rules: readonly string[]; steps: readonly Step[] }

/** What all permutations of a scenario came to, or those before the first that breaks a rule. */
export type Explored = {
  /** The steps of each session. */
  steps: ReadonlyMap<string, ReadonlySet<string>>
  /** Those that waited for a lock. */
  waiting: ReadonlySet<string>
  permutations: number
  waits: number
  deadlocks: number
  broken: Broken | null
}

/**
 * Runs the permutations of a scenario until one breaks a rule: one of `brokenRules`, a final delivery that can be claimed,
 * or a result that no serial order of the transactions has (`serial`).
 */
export async function explore(
  stage: DatabaseStage,
  scenario: Scenario,
  serial: ReadonlySet<string>,
  mutation?: Mutation,
): Promise<Explored> {
  const steps = new Map(Object.keys(scenario.sessions).map((name) => [name, new Set<string>()]))
  const waiting = new Set<string>()
  const explored: Explored = { steps, waiting, permutations: 0, waits: 0, deadlocks: 0, broken: null }
  for await (const permutation of permutationsOf(stage, scenario, { ...(mutation && { mutation }) })) {
    explored.permutations++
    explored.waits += permutation.waited.length
    for (const { session, name } of permutation.steps) steps.get(session)?.add(name)
    for (const { name } of permutation.waited) waiting.add(name)
    const ended = await endOf(stage, scenario, permutation)
    const hasDeadlock = isDeadlock(ended.did)
    if (hasDeadlock) explored.deadlocks++
    const rules = [
      ...brokenRules({ ...ended, waited: permutation.waited }),
      ...(await claimable(stage, ended.left)),
    ]
    if (hasDeadlock && scenario.mayDeadlock !== true) rules.push('no session is ended by a deadlock')
    if (!hasDeadlock && !(await compared(stage, scenario, ended)).every((result) => serial.has(result)))
      rules.push('some serial order of the transactions has the same result')
    if (rules.length > 0) return { ...explored, broken: { rules, steps: permutation.steps } }
  }
  return explored
}

/** Returns the results of every serial order of the transactions. */
export async function exploreSerially(
  stage: DatabaseStage,
  scenario: Scenario,
  mutation?: Mutation,
): Promise<ReadonlySet<string>> {
  const outcomes = new Set<string>()
  for await (const permutation of permutationsOf(stage, scenario, {
    isSerial: true,
    ...(mutation && { mutation }),
  }))
    for (const result of await compared(stage, scenario, await endOf(stage, scenario, permutation)))
      outcomes.add(result)
  return outcomes
}

function permutationsOf(
  stage: DatabaseStage,
  { rows, sessions, first = [] }: Scenario,
  { isSerial = false, mutation }: { isSerial?: boolean; mutation?: Mutation },
): AsyncGenerator<Permutation<Did>> {
  return permute(stage.of(rows, Object.keys(sessions)), {
    works: sessions,
    isSerial,
    // A serial order has no step that waits.
    first: isSerial ? [] : first,
    ...(mutation && { rewrite: mutation }),
  })
}

async function endOf(
  stage: DatabaseStage,
  { sessions }: Scenario,
  { results }: Permutation<Did>,
): Promise<{ did: AllDid; left: Left }> {
  const did: AllDid = {}
  for (const [name, result] of Object.entries(results)) did[name] = didOf(result)
  for (const [name, session] of Object.entries(sessions)) {
    const before = did[name]!
    if (session.isRepeated !== true || 'error' in before) continue
    const { claimed = [] } = await stage.run(session)
    did[name] = { claimed: [...(before.claimed ?? []), ...claimed].sort() }
  }
  return { did, left: await stage.read() }
}

/** What is compared with serial orders, each of which has been seen. */
async function compared(
  stage: DatabaseStage,
  { afterwards, isRowByRow = false }: Scenario,
  { did, left }: { did: AllDid; left: Left },
): Promise<string[]> {
  if (isRowByRow) return left.deliveries.map((delivery) => JSON.stringify(delivery))
  if (afterwards === undefined) return [JSON.stringify({ did, left })]
  await stage.run(afterwards)
  return [JSON.stringify({ did, left: await stage.read() })]
}

/** Tries to claim each delivery that no run may POST. */
async function claimable(stage: DatabaseStage, { deliveries }: Left): Promise<string[]> {
  const closed = deliveries.filter(
    ({ state, isTaken, place }) =>
      place !== 'new' && (!isTaken || ['completed', 'failed', 'stopped'].includes(state)),
  )
  if (closed.length === 0 || !(await stage.isAnyClaimable(closed))) return []
  return ['a delivery that is final, or that its webhook does not take, is never claimed']
}

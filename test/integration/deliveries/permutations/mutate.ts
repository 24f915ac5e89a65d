import { bind } from '../../../../src/db/connection/db.ts'
import { loadSql } from '../../../../src/deliveries/protocol/load-sql.ts'
import { replaceOnce } from '../../../helpers/mutate.ts'
import type { Rewrite, SentStatement } from './stepped-session.ts'
import {
  explore,
  exploreSerially,
  type Broken,
  type Explored,
  type Mutation,
  type Scenario,
} from './scenario.ts'
import { parametersOf, PROTOCOL } from './steps.ts'
import type { DatabaseStage } from './use-stage.ts'

/** A protocol that is wrong in one place, which the permutations have to notice. */
export type Mutant = {
  name: string
  /** Which statement: the name of its file, or of its step. */
  of: string
  /** Parts of its text, each of which stands in it exactly once, and what stands there instead. */
  edits?: readonly (readonly [from: string, to: string])[]
  /** Only in the session of this name. */
  only?: string
  /** The transaction of this statement does not take the lock of the webhook. */
  isUnlocked?: boolean
  /** Only scenarios in which this step waits for a lock. */
  waits?: string
  /** A serial order of the transactions shows it too. */
  isSerial?: boolean
}

/** The permutations of the statements that are shipped, with the results of every serial order. */
export type Shipped = { scenario: Scenario; serial: ReadonlySet<string>; explored: Explored }

/** `isSerial`: a serial order of the transactions shows it too. */
export type Killed = { scenario: Scenario; broken: Broken; permutations: number; isSerial: boolean }

/** PostgreSQL does not understand the statement: such a mutant is no other protocol. */
const NO_SQL = /error: 42/

/**
 * Runs the scenarios that have the statement until one breaks a rule; null where none does.
 *
 * @throws Error for edits that do not fit the statement
 */
export async function kill(
  stage: DatabaseStage,
  mutant: Mutant,
  shipped: readonly Shipped[],
): Promise<Killed | null> {
  let permutations = 0
  for (const { scenario, serial, explored: before } of shipped) {
    const mutated = [...before.steps].filter(
      ([name, steps]) => steps.has(mutant.of) && (mutant.only ?? name) === name,
    )
    if (mutated.length === 0 || (mutant.waits !== undefined && !before.waiting.has(mutant.waits))) continue
    const failures: unknown[] = []
    const mutation = mutationOf(mutant, new Set(mutated.map(([name]) => name)), failures)
    const explored = await explore(stage, scenario, serial, mutation)
    if (failures.length > 0) throw failures[0]
    permutations += explored.permutations
    const { broken } = explored
    if (broken === null) continue
    if (broken.rules.some((rule) => NO_SQL.test(rule))) throw new Error(broken.rules.join('; '))
    const outcomes = await exploreSerially(stage, scenario, mutation)
    const isSerial = [...outcomes].some((outcome) => !serial.has(outcome))
    return { scenario, broken, permutations, isSerial }
  }
  return null
}

/** An edit that fails would end a session like a statement that fails: it is kept in `failures`. */
function mutationOf(mutant: Mutant, sessions: ReadonlySet<string>, failures: unknown[]): Mutation {
  const unchanged: Rewrite = (_, statement) => statement
  const edited: Rewrite = (step, statement) => {
    if (mutant.isUnlocked === true && step === 'lock webhook') return { text: 'SELECT 1', values: [] }
    if (step !== mutant.of) return statement
    try {
      return edit(mutant, statement)
    } catch (error) {
      failures.push(error)
      throw error
    }
  }
  return (session) => (sessions.has(session) ? edited : unchanged)
}

function edit({ of, edits = [] }: Mutant, { text, values }: SentStatement): SentStatement {
  const statement = PROTOCOL.get(text)
  if (statement === undefined) return { text: replaceAll(text, edits), values }
  const patched = replaceAll(loadSql(of).text, edits)
  const given = new Map(statement.parameters.map((parameter, index) => [parameter, values[index]]))
  return bind(patched, Object.fromEntries(parametersOf(patched).map((name) => [name, given.get(name)])))
}

function replaceAll(text: string, edits: NonNullable<Mutant['edits']>): string {
  return edits.reduce((before, [from, to]) => replaceOnce(before, from, to, 'the statement'), text)
}

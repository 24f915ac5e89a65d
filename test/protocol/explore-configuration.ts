import type { Configuration } from './configurations.ts'
import type { ExplorerDatabase } from './database.ts'
import { explore, type Exploration, type Limits } from './explore.ts'
import { createModel } from './model.ts'

/** Explores a configuration, and prints what was reached. Throws with the shortest trace where a rule is broken. */
export async function exploreConfiguration(
  database: ExplorerDatabase,
  configuration: Configuration,
  limits: Limits = {},
): Promise<Exploration> {
  const { name, maxDepth } = configuration
  const [beganAtMs, executed] = [performance.now(), database.executed()]
  const explored = await explore(createModel(database, configuration), { maxDepth, ...limits })
  const { states, steps, depth, isComplete } = explored
  const seconds = ((performance.now() - beganAtMs) / 1000).toFixed(1)
  const transactions = database.executed() - executed
  const reached = isComplete ? 'to the fixed point' : 'and further'
  print(
    `${name}: ${states} states, ${steps} steps, depth ${depth} ${reached}, ${transactions} transactions, ${seconds} s`,
  )
  for (const { rule, trace } of explored.violations)
    throw new Error(`${rule}\n${trace.map((label, index) => `${index + 1}. ${label}`).join('\n')}`)
  return explored
}

export function print(line: string): void {
  process.stdout.write(`    ${line}\n`)
}

/** Divides the time that is left among what is still to be explored. */
export function createBudget(seconds: number): { deadlineMs(left: number): number } {
  const endsAtMs = performance.now() + seconds * 1000
  return {
    deadlineMs: (left) => performance.now() + Math.max(0, endsAtMs - performance.now()) / left,
  }
}

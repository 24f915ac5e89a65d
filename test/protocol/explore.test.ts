import { expect } from 'chai'
import { CONFIGURATIONS, type Configuration } from './configurations.ts'
import { createExplorerDatabase, type ExplorerDatabase } from './database.ts'
import { explore, type Exploration, type Limits } from './explore.ts'
import { createModel } from './model.ts'

/** Enough to reach every fixed point on two processors. */
const WHOLE_SECONDS = 600
const MIN_STATES = 100_000

const seconds = Number(process.env['POSTHORN_PROTOCOL_SECONDS'] ?? WHOLE_SECONDS)

describe('the statements of the delivery protocol, explored', function () {
  this.timeout(0)
  let database: ExplorerDatabase
  const budget = createBudget(seconds)
  const total = { states: 0, steps: 0 }

  before(async () => {
    database = await createExplorerDatabase((text) => text)
  })
  after(() => database.close())

  for (const [index, configuration] of CONFIGURATIONS.entries())
    it(`break no rule: ${configuration.name}`, async () => {
      const deadlineMs = budget.deadlineMs(CONFIGURATIONS.length - index)
      const { states, steps } = await exploreConfiguration(database, configuration, { deadlineMs })
      total.states += states
      total.steps += steps
    })

  it('reach as many states as they have', () => {
    print(`all: ${total.states} states, ${total.steps} steps, ${database.executed()} transactions`)
    if (seconds >= WHOLE_SECONDS) expect(total.states).to.be.at.least(MIN_STATES)
  })
})

/** Explores a configuration, and prints what was reached. Throws with the shortest trace where a rule is broken. */
async function exploreConfiguration(
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

function print(line: string): void {
  process.stdout.write(`    ${line}\n`)
}

/** Divides the time that is left among what is still to be explored. */
function createBudget(seconds: number): { deadlineMs(left: number): number } {
  const endsAtMs = performance.now() + seconds * 1000
  return {
    deadlineMs: (left) => performance.now() + Math.max(0, endsAtMs - performance.now()) / left,
  }
}

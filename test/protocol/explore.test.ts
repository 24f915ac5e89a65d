import { expect } from 'chai'
import { CONFIGURATIONS } from './configurations.ts'
import { createExplorerDatabase, type ExplorerDatabase } from './database.ts'
import { createBudget, exploreConfiguration, print } from './explore-configuration.ts'

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

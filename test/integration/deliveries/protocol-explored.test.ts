import { CONFIGURATIONS } from '../../protocol/configurations.ts'
import { createExplorerDatabase, type ExplorerDatabase } from '../../protocol/database.ts'
import { createBudget, exploreConfiguration } from '../../protocol/explore-configuration.ts'
import { killMutant } from '../../protocol/kill-mutant.ts'
import { MUTANTS } from '../../protocol/mutants.ts'

/** `npm run test:protocol` explores all of them to their end. */
const SECONDS = 45
const EXPLORED = CONFIGURATIONS.slice(0, 6)
const KILLED = MUTANTS.filter(({ foundIn }) => foundIn === CONFIGURATIONS[0]!.name).filter(
  (_, index) => index % 3 === 0,
)

describe('the statements of the delivery protocol, explored for a minute', function () {
  this.timeout(300_000)
  let database: ExplorerDatabase
  const budget = createBudget(SECONDS)

  before(async () => {
    database = await createExplorerDatabase((text) => text)
  })
  after(() => database.close())

  for (const [index, configuration] of EXPLORED.entries())
    it(`break no rule: ${configuration.name}`, async () => {
      await exploreConfiguration(database, configuration, {
        deadlineMs: budget.deadlineMs(EXPLORED.length - index),
      })
    })

  for (const mutant of KILLED)
    it(`break a rule once they are changed: ${mutant.file} ${mutant.name}`, async () => {
      await killMutant(mutant)
    })
})

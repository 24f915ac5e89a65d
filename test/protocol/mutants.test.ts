import { CONFIGURATIONS } from './configurations.ts'
import { createExplorerDatabase, sentText, type Rewrite } from './database.ts'
import { explore } from './explore.ts'
import { createModel } from './model.ts'
import { checkMutant, isOfFile, MUTANTS, type Mutant } from './mutants.ts'

/** The longest way to a mutant takes a fifth of it. */
const MAX_STATES = 60_000

describe('mutants of the statements of the delivery protocol', function () {
  this.timeout(0)

  for (const mutant of MUTANTS)
    it(`break a rule: ${mutant.file} ${mutant.name}`, async () => {
      await killMutant(mutant)
    })
})

/** Explores the mutant's configuration, and prints the rule that it breaks. Throws where it breaks none. */
async function killMutant(mutant: Mutant): Promise<void> {
  const { file, name, foundIn } = mutant
  const configuration = CONFIGURATIONS.find((one) => one.name === foundIn)
  if (configuration === undefined) throw new Error(`there is no configuration "${foundIn}"`)
  const database = await createExplorerDatabase(mutate(mutant))
  try {
    const { maxDepth } = configuration
    const model = createModel(database, configuration)
    const { violations, states } = await explore(model, { maxDepth, maxStates: MAX_STATES })
    const [found] = violations
    if (found === undefined) throw new Error(`${file} ${name}, and no rule is broken in ${states} states`)
    const steps = `${found.trace.length} steps (${foundIn})`
    process.stdout.write(`    ${file} ${name}. Broken in ${steps}: ${found.rule}\n`)
  } finally {
    await database.close()
  }
}

/** Returns what puts the mutant in the place of its statement. */
function mutate(mutant: Mutant): Rewrite {
  const { file, text, by } = mutant
  checkMutant(mutant)
  if (isOfFile(mutant)) return (statement) => statement.replace(text, () => by)
  const [from, to] = [sentText(file), sentText(file, (whole) => whole.replace(text, () => by))]
  return (statement) => (statement === from ? to : statement)
}

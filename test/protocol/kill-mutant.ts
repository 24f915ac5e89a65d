import { CONFIGURATIONS } from './configurations.ts'
import { createExplorerDatabase } from './database.ts'
import { explore } from './explore.ts'
import { print } from './explore-configuration.ts'
import { createModel } from './model.ts'
import { mutate } from './mutate.ts'
import type { Mutant } from './mutants.ts'

/** The longest way to a mutant takes a fifth of it. */
const MAX_STATES = 60_000

/** Explores the mutant's configuration, and prints the rule that it breaks. Throws where it breaks none. */
export async function killMutant(mutant: Mutant): Promise<void> {
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
    print(`${file} ${name}. Broken in ${found.trace.length} steps (${foundIn}): ${found.rule}`)
  } finally {
    await database.close()
  }
}

import { expect } from 'chai'
import { kill, type Shipped } from './permutations/mutate.ts'
import { MUTANTS } from './permutations/mutants.ts'
import { explore, exploreSerially, type Broken, type Scenario } from './permutations/scenario.ts'
import { CHANGES } from './permutations/scenarios/changes.ts'
import { CLAIMS } from './permutations/scenarios/claims.ts'
import { OUTCOMES } from './permutations/scenarios/outcomes.ts'
import { useStage } from './permutations/use-stage.ts'

const SCENARIOS: readonly Scenario[] = [...CLAIMS, ...CHANGES, ...OUTCOMES]

/** Only `npm run test:protocol` runs the mutants. */
const CHOSEN = process.env['POSTHORN_TEST_FURTHER'] === undefined ? [] : MUTANTS

/** On a busy machine. */
const TIMEOUT_MS = 60_000

/** Describes which rules a permutation breaks, with its steps. */
function describeBroken({ rules, steps }: Broken): string {
  return `${rules.join('; ')}: ${steps.map(({ session, name }) => `${session}: ${name}`).join(' · ')}`
}

describe('the delivery protocol between sessions', () => {
  const stage = useStage()
  const known = new Map<Scenario, Promise<Shipped>>()
  const killed: string[] = []
  let mutated = 0
  const beganAtMs = performance.now()

  /** Explores a scenario once, also where only some of the tests run. */
  function explored(scenario: Scenario): Promise<Shipped> {
    const found =
      known.get(scenario) ??
      exploreSerially(stage, scenario).then(async (serial) => ({
        scenario,
        serial,
        explored: await explore(stage, scenario, serial),
      }))
    known.set(scenario, found)
    return found
  }

  /** All scenarios, those with the fewest permutations first. */
  async function allExplored(): Promise<Shipped[]> {
    const all: Shipped[] = []
    for (const scenario of SCENARIOS) all.push(await explored(scenario))
    return all.sort((one, other) => one.explored.permutations - other.explored.permutations)
  }

  for (const scenario of SCENARIOS)
    it(scenario.title, async () => {
      const { broken } = (await explored(scenario)).explored
      expect(broken === null ? '' : describeBroken(broken)).to.equal('')
    }).timeout(TIMEOUT_MS)

  for (const mutant of CHOSEN)
    it(`notices that ${mutant.name}`, async () => {
      const found = await kill(stage, mutant, await allExplored())
      expect(found, 'every permutation keeps every rule').not.to.equal(null)
      const { scenario, broken, permutations, isSerial } = found!
      mutated += permutations
      killed.push(`${mutant.name}${isSerial ? ' (also in a serial order)' : ''}`)
      killed.push(`  by "${scenario.title}": ${describeBroken(broken)}`)
      expect(isSerial).to.equal(mutant.isSerial ?? false)
    }).timeout(TIMEOUT_MS)

  after(async () => {
    const all = await Promise.all([...known.values()].map(async (one) => (await one).explored))
    const sum = (figure: 'permutations' | 'waits' | 'deadlocks'): number =>
      all.reduce((total, one) => total + one[figure], 0)
    const seconds = Math.round((performance.now() - beganAtMs) / 1_000)
    const lines = [
      `${sum('permutations')} permutations of ${all.length} scenarios: ${sum('waits')} waits for a lock, ${sum('deadlocks')} deadlocks`,
      ...(CHOSEN.length === 0
        ? []
        : [
            `${killed.length / 2} of ${CHOSEN.length} mutants killed in ${mutated} permutations; ${seconds} s in all`,
          ]),
      ...killed,
    ]
    process.stdout.write(`${lines.map((line) => `    ${line}`).join('\n')}\n`)
  })
})

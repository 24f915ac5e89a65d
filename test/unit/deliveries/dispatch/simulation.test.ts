import { expect } from 'chai'
import { createDispatcher } from '../../../../src/deliveries/dispatch/dispatcher.ts'
import { MUTANTS, withMutant } from './simulation/mutants.ts'
import { play } from './simulation/play.ts'

/** Seconds of the machine's time for scenarios, and more of them by this variable. */
const SECONDS = Number(process.env['POSTHORN_SIMULATION_SECONDS'] ?? 4)

/** On a busy machine too. */
const MIN_SCENARIOS = 8

/** A defect has to show within so many scenarios. */
const MAX_SCENARIOS = 400

function report(line: string): void {
  process.stdout.write(`${line}\n`)
}

describe('several processes that dispatch deliveries, simulated', () => {
  it('begin or return whatever they hold, and leave nothing behind', async function () {
    this.timeout((SECONDS + 60) * 1_000)
    const endsAtMs = performance.now() + SECONDS * 1_000
    const totals = { scenarios: 0, deliveries: 0, posts: 0, virtualMs: 0 }
    for (let seed = 0; seed < MIN_SCENARIOS || performance.now() < endsAtMs; seed++) {
      const { violations, deliveries, posts, virtualMs } = await play(seed, createDispatcher)
      expect(violations, `POSTHORN_SIMULATION_SEED=${seed}`).to.deep.equal([])
      totals.scenarios++
      totals.deliveries += deliveries
      totals.posts += posts
      totals.virtualMs += virtualMs
    }
    report(
      `      ${totals.scenarios} scenarios, ${totals.deliveries} deliveries, ${totals.posts} POSTs, ` +
        `${Math.round(totals.virtualMs / 3_600_000)} hours`,
    )
  })

  for (const mutant of MUTANTS)
    it(`show the defect of a dispatcher that ${mutant.name}`, async function () {
      const found = await withMutant(mutant, async (create) => {
        for (let scenarios = 1; scenarios <= MAX_SCENARIOS; scenarios++) {
          const { violations } = await play((mutant.firstSeed ?? 0) + scenarios - 1, create)
          if (violations.length > 0) return { scenarios, violation: violations[0] }
        }
        return null
      })
      if (found !== null) report(`      after ${found.scenarios} scenarios: ${found.violation}`)
      expect(found, 'a violation').not.to.equal(null)
    })
})

import { killMutant } from './kill-mutant.ts'
import { MUTANTS } from './mutants.ts'

describe('mutants of the statements of the delivery protocol', function () {
  this.timeout(0)

  for (const mutant of MUTANTS)
    it(`break a rule: ${mutant.file} ${mutant.name}`, async () => {
      await killMutant(mutant)
    })
})

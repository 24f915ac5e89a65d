import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { checkMutant, MUTANTS } from '../../protocol/mutants.ts'

const SRC = fileURLToPath(new URL('../../../src/', import.meta.url))

/** What changes a row of `delivery`, in SQL or by its repository. */
const CHANGES = /(UPDATE|INSERT INTO|DELETE FROM|MERGE INTO)\s+"?delivery"?\b|getRepository\(Delivery\)/

/** Besides the protocol: migrations, retention and erasure. */
const MAY = /^(deliveries\/protocol\/[\w-]+\.sql|db\/migrations\/.*|db\/queries\/(retention|erasures)\.ts)$/

describe('the delivery protocol', () => {
  it('is the only place whose statements change a delivery, besides migrations, retention and erasure', () => {
    const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.(ts|sql)$/.test(name),
    )
    const changing = files.filter((name) => CHANGES.test(readFileSync(join(SRC, name), 'utf8')))
    expect(changing.filter((name) => !MAY.test(name))).to.deep.equal([])
    expect(changing.filter((name) => name.endsWith('.sql'))).to.have.length.above(10)
  })

  it('is what the mutants of `npm run test:protocol` change', () => {
    for (const mutant of MUTANTS) checkMutant(mutant)
  })

  it('states in the first line of each file what the statement is for', () => {
    const folder = join(SRC, 'deliveries/protocol')
    const files = readdirSync(folder).filter((name) => name.endsWith('.sql'))
    for (const name of files)
      expect(readFileSync(join(folder, name), 'utf8'), name).to.match(/^-- [A-Z].{20}/)
  })
})

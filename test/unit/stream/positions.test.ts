import { expect } from 'chai'
import { createPositions, POSITION_PATTERN } from '../../../src/stream/positions.ts'

const OLD = { id: 'old', key: Buffer.alloc(32, 1) }
const NEW = { id: 'n'.repeat(32), key: Buffer.alloc(32, 2) }
const POSITION = { sequence: 42, atMs: 1_795_270_062_078 }

describe('positions of the stream', () => {
  it('open for their organisation only, with any key of the ring', () => {
    const sealed = createPositions([OLD]).seal('org_a', POSITION)
    const rotated = createPositions([NEW, OLD])
    expect(rotated.open('org_a', sealed)).to.deep.equal(POSITION)
    expect(rotated.open('org_b', sealed)).to.equal(null)
    expect(createPositions([NEW]).open('org_a', sealed)).to.equal(null)
    const changed = `${sealed.slice(0, -2)}${sealed.endsWith('AA') ? 'BA' : 'AA'}`
    expect(rotated.open('org_a', changed)).to.equal(null)
    expect(rotated.open('org_a', 'something else')).to.equal(null)
  })

  it('have one length and the documented form, whatever they hold', () => {
    const positions = createPositions([NEW])
    const sealed = [0, 7, Number.MAX_SAFE_INTEGER].map((sequence) =>
      positions.seal('org_a', { sequence, atMs: POSITION.atMs }),
    )
    for (const text of sealed) expect(text).to.match(new RegExp(`^${POSITION_PATTERN}$`))
    expect(new Set(sealed.map(({ length }) => length)).size).to.equal(1)
    expect(positions.open('org_a', sealed[2]!)?.sequence).to.equal(Number.MAX_SAFE_INTEGER)
  })
})

import { expect } from 'chai'
import { newId } from '../../src/ids.ts'

describe('newId', () => {
  const ids = Array.from({ length: 10_000 }, newId)

  it('returns a UUID of version 7 that contains the time', () => {
    for (const id of ids)
      expect(id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const ms = Number.parseInt(newId().replaceAll('-', '').slice(0, 12), 16)
    expect(ms).to.be.closeTo(Date.now(), 1_000)
  })

  it('sorts after earlier ids, even within one millisecond', () => {
    expect(ids.toSorted()).to.deep.equal(ids)
    expect(new Set(ids).size).to.equal(ids.length)
  })

  it('cannot be guessed from its neighbour: its last 48 bits are random', () => {
    expect(new Set(ids.map((id) => id.slice(-12))).size).to.equal(ids.length)
  })
})

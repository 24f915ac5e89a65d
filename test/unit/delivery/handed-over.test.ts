import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createHandedOver } from '../../../src/delivery/handed-over.ts'

describe('what was handed over to the engine', () => {
  it('is counted by webhook until it has ended', () => {
    const handedOver = createHandedOver()
    handedOver.add('w', 'one', false)
    handedOver.add('w', 'two', true)
    handedOver.add('v', 'three', false)
    expect([handedOver.of('w'), handedOver.of('v'), handedOver.of('u')]).to.deep.equal([2, 1, 0])
    handedOver.begun('one')
    expect(handedOver.of('w')).to.equal(2)
    handedOver.ended('one')
    handedOver.ended('two')
    expect(handedOver.of('w')).to.equal(0)
  })

  it('waits for the engine until it has begun, unless it is apart', () => {
    const handedOver = createHandedOver()
    handedOver.add('w', 'one', false)
    handedOver.add('w', 'two', false)
    handedOver.add('w', 'apart', true)
    expect(handedOver.notBegun()).to.equal(2)
    handedOver.begun('one')
    handedOver.begun('one')
    handedOver.begun('apart')
    expect(handedOver.notBegun()).to.equal(1)
    handedOver.ended('one')
    handedOver.ended('apart')
    expect(handedOver.notBegun()).to.equal(1)
    handedOver.ended('two')
    expect(handedOver.notBegun()).to.equal(0)
  })

  it('counts a delivery once, however often it is added, begun or ended', () => {
    const handedOver = createHandedOver()
    handedOver.add('w', 'one', false)
    handedOver.add('w', 'one', false)
    expect([handedOver.of('w'), handedOver.notBegun()]).to.deep.equal([1, 1])
    handedOver.ended('one')
    handedOver.ended('one')
    expect([handedOver.of('w'), handedOver.notBegun()]).to.deep.equal([0, 0])
  })

  it('takes no notice of what was never handed over here', () => {
    const handedOver = createHandedOver()
    const ended: string[] = []
    handedOver.onEnded((webhookId) => ended.push(webhookId))
    handedOver.begun('unknown')
    handedOver.ended('unknown')
    expect([handedOver.notBegun(), handedOver.olderThan(0)]).to.deep.equal([0, []])
    expect(ended).to.have.length(0)
  })

  it('says which webhook has room again when one has ended', () => {
    const handedOver = createHandedOver()
    const counts: [string, number][] = []
    handedOver.onEnded((webhookId) => counts.push([webhookId, handedOver.of(webhookId)]))
    handedOver.add('w', 'one', false)
    handedOver.add('w', 'two', false)
    handedOver.ended('one')
    handedOver.ended('two')
    expect(counts).to.deep.equal([
      ['w', 1],
      ['w', 0],
    ])
  })

  it('names those that were handed over so long ago', async () => {
    const handedOver = createHandedOver()
    handedOver.add('w', 'old', false)
    await delay(60)
    handedOver.add('w', 'new', false)
    expect(handedOver.olderThan(40)).to.deep.equal(['old'])
    expect(handedOver.olderThan(0)).to.deep.equal(['old', 'new'])
    expect(handedOver.olderThan(1_000)).to.deep.equal([])
  })
})

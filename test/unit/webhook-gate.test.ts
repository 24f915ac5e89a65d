import { expect } from 'chai'
import { createWebhookGate } from '../../src/delivery/webhook-gate.ts'

const enter = (gate: ReturnType<typeof createWebhookGate>, webhook: string, delivery: string) => {
  const pass = gate.enter(webhook, delivery)
  return 'leave' in pass ? pass : null
}
const wait = (gate: ReturnType<typeof createWebhookGate>, webhook: string, delivery: string): number => {
  const pass = gate.enter(webhook, delivery)
  return 'comeBackAfterMs' in pass ? pass.comeBackAfterMs : Number.NaN
}

describe('the gate of a webhook', () => {
  it('lets in as many as its capacity, and the next when one has left', () => {
    const gate = createWebhookGate(2)
    const first = enter(gate, 'w', 'a')
    expect(enter(gate, 'w', 'b')).not.to.equal(null)
    expect(enter(gate, 'w', 'c')).to.equal(null)
    first!.leave()
    expect(enter(gate, 'w', 'c')).not.to.equal(null)
  })

  it('never makes one webhook wait for another', () => {
    const gate = createWebhookGate(1)
    enter(gate, 'hangs', 'a')
    expect(enter(gate, 'hangs', 'b')).to.equal(null)
    expect(enter(gate, 'healthy', 'c')).not.to.equal(null)
  })

  it('sends those away for longer that find more before them, up to a quarter of an hour', () => {
    const gate = createWebhookGate(2)
    enter(gate, 'w', 'a')
    enter(gate, 'w', 'b')
    const waits = Array.from({ length: 2_000 }, (_, index) => wait(gate, 'w', `late-${index}`))
    expect(waits).to.deep.equal([...waits].sort((a, b) => a - b))
    expect(waits[0]).to.be.within(500, 1_000)
    expect(waits.at(-1)).to.equal(900_000)
  })

  it('does not count a delivery twice that comes again too early', () => {
    const gate = createWebhookGate(1)
    enter(gate, 'w', 'a')
    const first = wait(gate, 'w', 'b')
    expect(wait(gate, 'w', 'b')).to.equal(first)
  })
})

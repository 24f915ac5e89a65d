import { expect } from 'chai'
import {
  createDeliveryStates,
  type DeliveryState,
} from '../../../../src/deliveries/dispatch/delivery-states.ts'

const QUEUED: DeliveryState = { at: 'queued' }
const INLINE: DeliveryState = { at: 'inline' }
const inTemporal = (more: { sinceMs?: number; isBegun?: boolean; isSlow?: boolean } = {}): DeliveryState => ({
  at: 'in_temporal',
  sinceMs: 0,
  isBegun: false,
  isSlow: false,
  ...more,
})
const delivery = (deliveryId: string, webhookId = 'w') => ({ deliveryId, webhookId })

describe('the states of tracked deliveries', () => {
  it('keep one state per delivery, the latest', () => {
    const states = createDeliveryStates()
    expect(states.of('one')).to.equal(null)
    for (const state of [QUEUED, INLINE, QUEUED, inTemporal()]) {
      states.set(delivery('one'), state)
      expect(states.of('one')).to.deep.equal(state)
      const counts = [states.count('queued'), states.count('inline'), states.inTemporal('w')]
      expect(counts.reduce((sum, count) => sum + count)).to.equal(1)
    }
    states.remove('one')
    states.remove('one')
    expect(states.of('one')).to.equal(null)
    expect([states.inTemporal('w'), states.waitingInTemporal()]).to.deep.equal([0, 0])
  })

  it('count the first attempts in Temporal of each webhook until they end', () => {
    const states = createDeliveryStates()
    states.set(delivery('one'), inTemporal())
    states.set(delivery('two'), inTemporal({ isSlow: true }))
    states.set(delivery('three', 'v'), inTemporal())
    expect(['w', 'v', 'u'].map((id) => states.inTemporal(id))).to.deep.equal([2, 1, 0])
    states.set(delivery('one'), inTemporal({ isBegun: true }))
    expect(states.inTemporal('w')).to.equal(2)
    for (const id of ['one', 'two']) states.remove(id)
    expect(states.inTemporal('w')).to.equal(0)
  })

  it('count the deliveries that wait for a worker, except those of slow endpoints', () => {
    const states = createDeliveryStates()
    states.set(delivery('one'), inTemporal())
    states.set(delivery('two'), inTemporal())
    states.set(delivery('slow', 'v'), inTemporal({ isSlow: true }))
    expect(states.waitingInTemporal()).to.equal(2)
    expect([...states.slowInTemporal()]).to.deep.equal(['v'])
    states.set(delivery('one'), inTemporal({ isBegun: true }))
    expect(states.waitingInTemporal()).to.equal(1)
    states.set(delivery('two'), QUEUED)
    expect(states.waitingInTemporal()).to.equal(0)
  })

  it('list the deliveries that have been in Temporal for a given time', () => {
    const states = createDeliveryStates()
    states.set(delivery('old'), inTemporal({ sinceMs: 1_000 }))
    states.set(delivery('new'), inTemporal({ sinceMs: 2_000 }))
    states.set(delivery('queued'), QUEUED)
    expect(states.inTemporalSince(1_000)).to.deep.equal([delivery('old')])
    expect(states.inTemporalSince(999)).to.deep.equal([])
  })
})

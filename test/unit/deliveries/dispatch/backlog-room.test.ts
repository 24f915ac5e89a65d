import { expect } from 'chai'
import { backlogRoom, hasBacklogRoom } from '../../../../src/deliveries/dispatch/backlog-room.ts'

const SLOW = { endpoint: 'slow', limit: 2, freeSlots: 2, queued: 0, inTemporal: 0 } as const
const FAILING = { ...SLOW, endpoint: 'failing' } as const

describe('the backlog capacity of an unhealthy webhook', () => {
  it('equals the concurrency of a slow endpoint', () => {
    expect(backlogRoom(SLOW)).to.equal(2)
    expect(hasBacklogRoom({ ...SLOW, queued: 1 })).to.equal(true)
    expect(hasBacklogRoom({ ...SLOW, queued: 2 })).to.equal(false)
  })

  it('is zero while a slow endpoint has no free slot, or has as many deliveries in Temporal', () => {
    expect(backlogRoom({ ...SLOW, freeSlots: 0 })).to.equal(0)
    expect(backlogRoom({ ...SLOW, inTemporal: 2 })).to.equal(0)
    expect(backlogRoom({ ...SLOW, inTemporal: 1, queued: 1 })).to.equal(0)
  })

  it('is zero in memory for a hanging endpoint without a free slot', () => {
    expect(hasBacklogRoom({ ...SLOW, endpoint: 'hanging', freeSlots: 1 })).to.equal(true)
    expect(hasBacklogRoom({ ...SLOW, endpoint: 'hanging', freeSlots: 0 })).to.equal(false)
  })

  it('is twenty in memory for an endpoint that fails quickly', () => {
    expect(backlogRoom({ ...FAILING, freeSlots: 0, inTemporal: 2, queued: 5 })).to.equal(15)
    expect(hasBacklogRoom({ ...FAILING, queued: 19 })).to.equal(true)
    expect(hasBacklogRoom({ ...FAILING, queued: 20 })).to.equal(false)
  })
})

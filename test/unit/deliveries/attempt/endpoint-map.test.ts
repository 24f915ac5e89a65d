import { expect } from 'chai'
import { createEndpoints } from '../../../../src/deliveries/attempt/endpoint-concurrency.ts'

function create() {
  const endpoints = createEndpoints({ maxLimit: 50 })
  /** Begins a POST; returns what ends it with a success. */
  const post = (webhookId: string): (() => void) => {
    const slot = endpoints.acquire(webhookId, 'delivery')
    if (!('begin' in slot)) throw new Error('no slot is free')
    slot.begin()
    return () => slot.release({ succeeded: true, isTimeout: false })
  }
  return { endpoints, post }
}

describe('the endpoints of a process', () => {
  /** Endpoints without a limit of their own in memory, and more than that. */
  const FEW = 10_000
  const MANY = 40_000

  it('cost no more each when very many of them are active', () => {
    const { endpoints } = create()
    const take = (from: number, to: number): number => {
      const startedAt = process.cpuUsage()
      for (let index = from; index < to; index++) endpoints.acquire(`webhook-${index}`, 'delivery')
      return process.cpuUsage(startedAt).user
    }
    const few = take(0, FEW)
    // Ten times what the same number took before.
    expect(take(FEW, MANY)).to.be.below((10 * few * (MANY - FEW)) / FEW)
  })

  it('are forgotten once they are idle and very many others were used since', () => {
    const { endpoints, post } = create()
    for (let index = 0; index < FEW; index++) post(`old-${index}`)()
    const busy = post('old-1')
    for (let index = 1; index < FEW; index++) post(`new-${index}`)()
    for (const [name, isKnown] of Object.entries({
      'old-1': true,
      'new-1': true,
      'old-0': false,
      'old-9999': false,
    }))
      expect(endpoints.hasAnswered(name), name).to.equal(isKnown)
    busy()
  })
})

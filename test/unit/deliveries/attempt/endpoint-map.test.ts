import { expect } from 'chai'
import { createEndpoints } from '../../../../src/deliveries/attempt/endpoint-registry.ts'
import { processTimers } from '../../../../src/timers.ts'

/** Endpoints on a manual clock. */
function create() {
  let nowMs = 1_000_000
  const endpoints = createEndpoints({ maxLimit: 50, timers: { ...processTimers, nowMs: () => nowMs } })
  /** Begins a POST; returns what ends it with a success. */
  const post = (webhookId: string): (() => void) => {
    const slot = endpoints.acquire(webhookId, 'delivery')
    if (!('begin' in slot)) throw new Error('no slot is free')
    slot.begin()
    return () => slot.release({ succeeded: true, durationMs: 20, isTimeout: false })
  }
  const pass = (ms: number): void => void (nowMs += ms)
  return { endpoints, post, pass }
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

  it('are dropped once they are idle for a minute, as others come', () => {
    const { endpoints, post, pass } = create()
    for (let index = 0; index < FEW; index++) post(`old-${index}`)()
    const isKnown = (name: string): boolean => endpoints.hasAnswered(name)
    pass(61_000)
    const busy = post('old-1')
    for (let index = 1; index < FEW; index++) post(`new-${index}`)()
    const known = (prefix: string): string[] =>
      Array.from({ length: FEW }, (_, index) => `${prefix}-${index}`).filter(isKnown)
    expect(known('old')).to.deep.equal(['old-1'])
    expect(known('new')).to.have.length(FEW - 1)
    busy()
  })
})

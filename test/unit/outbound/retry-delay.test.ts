import { expect } from 'chai'
import fc from 'fast-check'
import { retryAfterMs, retryDelayMs } from '../../../src/outbound/api-answer.ts'

const delays = (failures: number, retryAfterMs: number | null = null, retryMs = 3_000) =>
  [0, 1].map((random) => retryDelayMs({ retryMs, failures, retryAfterMs }, random))

describe('retryDelayMs', () => {
  it('doubles the delay of the server with each failure, up to half a minute', () => {
    expect(delays(0)).to.deep.equal([1_500, 3_000])
    expect(delays(1)).to.deep.equal([3_000, 6_000])
    expect(delays(10)).to.deep.equal([15_000, 30_000])
  })

  it('never comes before Retry-After, and a little after it', () => {
    expect(delays(0, 5_000)).to.deep.equal([5_000, 6_250])
    expect(delays(10, 1_000)).to.deep.equal([1_000, 1_250])
  })

  it('doubles after `Retry-After: 0` too, which names no delay', () => {
    expect(delays(1, retryAfterMs('0'))).to.deep.equal([3_000, 6_000])
  })

  it('is bounded whatever the server names', () => {
    const amount = fc.nat()
    fc.assert(
      fc.property(
        amount,
        amount,
        fc.option(amount),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (retryMs, failures, retryAfterMs, random) => {
          const delayMs = retryDelayMs({ retryMs, failures, retryAfterMs }, random)
          return delayMs >= 0 && delayMs <= 375_000
        },
      ),
    )
  })
})

import { expect } from 'chai'
import { MAX_ATTEMPTS, RETRY_WAITS_MS, waitAfterAttempt } from '../../../src/domain/retry-schedule.ts'

/** Spec 8.1, word for word: attempt, and the wait before it since the previous attempt. */
const TABLE: readonly [attempt: number, wait: string, waitMs: number][] = [
  [2, '1 second', 1_000],
  [3, '2 seconds', 2_000],
  [4, '4 seconds', 4_000],
  [5, '8 seconds', 8_000],
  [6, '5 minutes', 300_000],
  [7, '30 minutes', 1_800_000],
  [8, '2 hours', 7_200_000],
  [9, '6 hours', 21_600_000],
  [10, '24 hours', 86_400_000],
]

describe('the retry schedule', () => {
  for (const [attempt, wait, waitMs] of TABLE) {
    it(`waits ${wait} before attempt ${attempt}`, () => {
      expect(waitAfterAttempt(attempt - 1)).to.equal(waitMs)
    })
  }

  it('ends with attempt 10', () => {
    expect(MAX_ATTEMPTS).to.equal(10)
    expect(waitAfterAttempt(10)).to.equal(null)
    expect(waitAfterAttempt(11)).to.equal(null)
  })

  it('has no other waits', () => {
    expect(RETRY_WAITS_MS).to.deep.equal(TABLE.map(([, , waitMs]) => waitMs))
  })
})

import { expect } from 'chai'
import {
  describeOutcome,
  FAILURE_CODES,
  isSuccessStatus,
  stateAfterAttempt,
} from '../../../src/domain/attempt-outcome.ts'
import { MAX_ATTEMPTS, RETRY_WAITS_MS, waitAfterAttempt } from '../../../src/domain/retry-schedule.ts'

describe('isSuccessStatus', () => {
  it('returns true for every 2xx and for nothing else', () => {
    const confirmed = Array.from({ length: 1000 }, (_, status) => status).filter(isSuccessStatus)
    expect(confirmed).to.deep.equal(Array.from({ length: 100 }, (_, index) => 200 + index))
  })
})

describe('stateAfterAttempt', () => {
  it('completes a delivery with any successful attempt', () => {
    for (const number of [1, 9, 10, 11]) expect(stateAfterAttempt(true, number)).to.equal('completed')
  })

  it('returns waiting after failed attempts 1 to 9', () => {
    for (let number = 1; number <= 9; number++) expect(stateAfterAttempt(false, number)).to.equal('waiting')
  })

  it('returns failed after the tenth attempt, or a later one that a user requested', () => {
    for (const number of [10, 11, 12]) expect(stateAfterAttempt(false, number)).to.equal('failed')
  })
})

describe('describeOutcome', () => {
  for (const [words, failureCode, statusCode] of [
    ['HTTP 503', 'http_status', 503],
    ['connect timeout', 'connect_timeout', null],
    ['worker lost', 'worker_lost', null],
    ['no attempt was made', null, null],
  ] as const) {
    it(`returns "${words}"`, () => {
      expect(describeOutcome({ state: 'waiting', failureCode, statusCode })).to.equal(words)
    })
  }

  it('describes how a delivery was confirmed', () => {
    expect(describeOutcome({ state: 'completed', failureCode: null, statusCode: 204 })).to.equal(
      'confirmed with HTTP 204',
    )
  })

  it('has words for every failure code', () => {
    for (const failureCode of FAILURE_CODES) {
      expect(describeOutcome({ state: 'failed', failureCode, statusCode: null })).to.match(/^[a-z ]+$/)
    }
  })
})

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

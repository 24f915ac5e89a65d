import { expect } from 'chai'
import {
  describeOutcome,
  FAILURE_CODES,
  isSuccessStatus,
  stateAfterAttempt,
} from '../../../src/domain/attempt-outcome.ts'

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

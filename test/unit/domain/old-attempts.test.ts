import { expect } from 'chai'
import { dueOf, queueOfKind, toAttemptRequest, withOldFields } from '../../../src/domain/old-attempts.ts'

const ids = { organisationId: 'org_1', webhookId: 'webhook', deliveryId: 'delivery', number: 6 }
const failed = { state: 'waiting', failureCode: 'http_status', statusCode: 500 } as const

describe('outcomes of release 0.1 in a history', () => {
  for (const [what, attempts, sinceEndMs, dueInMs] of [
    ['the whole wait after a report in time', 5, 12.5, 300_000],
    ['the whole wait of a second', 1, 1_000, 1_000],
    ['the rest after a late report', 5, 1_500, 298_500],
    ['a negative rest after a report that is later than the wait', 1, 9_000, -8_000],
  ] as const)
    it(`lead to ${what}`, () => {
      const outcome = { ...failed, attempts, endedAtMs: 10_000, sinceEndMs, immediately: false }
      const waitMs = attempts === 1 ? 1_000 : 300_000
      expect(dueOf(outcome)).to.deep.equal({ dueAtMs: 10_000 + waitMs, dueInMs })
    })

  it('lead to an attempt at once where a retry was requested', () => {
    const outcome = { ...failed, attempts: 5, endedAtMs: 10_000, sinceEndMs: 10, immediately: true }
    expect(dueOf(outcome)).to.deep.equal({ dueAtMs: null, dueInMs: 0 })
  })
})

describe('an outcome for workflows of release 0.1', () => {
  const oldWaitMs = (outcome: object, waitMs: number): number => {
    const { sinceEndMs } = outcome as { sinceEndMs: number }
    return waitMs - (sinceEndMs > 1_000 ? sinceEndMs : 0)
  }

  it('keeps the new fields, and comes to the same instant', () => {
    const outcome = { ...failed, attempts: 5, dueAtMs: 400_000, dueInMs: 200_000 }
    const both = withOldFields(outcome)
    expect(both).to.include(outcome)
    expect(both).to.include({ endedAtMs: 100_000, sinceEndMs: 100_000, immediately: false })
    expect(oldWaitMs(both, 300_000)).to.equal(outcome.dueInMs)
  })

  it('begins a timer where it began one in release 0.1, with the lead of production', () => {
    const leadMs = 1_000
    for (const [attempts, waitMs] of [[1, 1_000] as const, [2, 2_000] as const, [5, 300_000] as const])
      for (let dueInMs = -2_500; dueInMs <= waitMs; dueInMs += 99.5) {
        const both = withOldFields({ ...failed, attempts, dueAtMs: 400_000, dueInMs })
        expect(oldWaitMs(both, waitMs) - leadMs > 0, `${attempts}, ${dueInMs}`).to.equal(dueInMs - leadMs > 0)
      }
  })

  it('is the same where nothing waits', () => {
    const completed = { state: 'completed', attempts: 1, failureCode: null, statusCode: 200 } as const
    expect(withOldFields(completed)).to.equal(completed)
    expect(withOldFields({ state: 'deferred', delayMs: 500 })).to.deep.equal({
      state: 'deferred',
      delayMs: 500,
    })
  })
})

describe('a request of a workflow of release 0.1', () => {
  it('waits for the same instant', () => {
    const waitUntil = { dueAtMs: 5_000, maxWaitMs: 1_000 }
    const request = { ...ids, waitUntil, onlyIfDue: false, kind: 'retry' } as const
    expect(toAttemptRequest(request)).to.deep.equal({ ...ids, ...waitUntil, queue: 'retry' })
  })

  for (const onlyIfDue of [true, false])
    it(`is made if it is due, where it waits for none (onlyIfDue: ${onlyIfDue})`, () => {
      const request = { ...ids, waitUntil: null, onlyIfDue, kind: 'slow' } as const
      const wanted = { ...ids, dueAtMs: null, maxWaitMs: 0, queue: 'slow' }
      expect(toAttemptRequest(request)).to.deep.equal(wanted)
    })

  it('is slow where the endpoint never answered', () => {
    expect(queueOfKind('unproven')).to.equal('slow')
  })

  it('is left alone where it is a new one', () => {
    const request = { ...ids, dueAtMs: 5_000, maxWaitMs: 1_000, queue: 'retry' } as const
    expect(toAttemptRequest(request)).to.equal(request)
  })
})

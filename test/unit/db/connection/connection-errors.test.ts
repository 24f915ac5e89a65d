import { expect } from 'chai'
import { QueryFailedError, QueryRunnerAlreadyReleasedError } from 'typeorm'
import {
  DatabaseBusyError,
  DatabaseUnavailableError,
  isDatabaseDown,
  isDatabaseUnavailable,
} from '../../../../src/db/connection/connection-errors.ts'

const withCode = (code: string): Error => Object.assign(new Error('said by the server'), { code })

describe('isDatabaseUnavailable', () => {
  for (const [what, codes] of [
    [
      'a connection that breaks',
      ['08000', '08006', '08P01', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENETUNREACH'],
    ],
    ['a role or a password that is being changed', ['28000', '28P01']],
    ['a disk, memory or connections that are used up', ['53100', '53200', '53300', '53400']],
    ['descriptors of this process that are used up', ['EMFILE', 'ENFILE']],
    ['a server that stops or starts', ['57P01', '57P02', '57P03', '57P05']],
    ['a statement, lock or transaction that took too long', ['57014', '55P03', '25P03', '25P04']],
    ['an I/O error', ['58030']],
    ['a standby', ['25006']],
    ['work to be done again', ['40001', '40P01']],
  ] as const) {
    it(`is true for ${what}`, () => {
      for (const code of codes) expect(isDatabaseUnavailable(withCode(code)), code).to.equal(true)
    })
  }

  it('is true for our own time-outs, also as TypeORM wraps them', () => {
    const error = new DatabaseUnavailableError('no answer')
    expect(isDatabaseUnavailable(error)).to.equal(true)
    expect(isDatabaseUnavailable(new QueryFailedError('SELECT 1', [], error))).to.equal(true)
  })

  it('is true for a transaction whose connection was lost between two statements', () => {
    expect(isDatabaseUnavailable(new QueryRunnerAlreadyReleasedError())).to.equal(true)
  })

  it('is false for an invalid statement', () => {
    for (const code of ['42601', '23505', '23503', '22P02', '42P01', '25001'])
      expect(isDatabaseUnavailable(withCode(code)), code).to.equal(false)
    expect(isDatabaseUnavailable(new Error('anything else'))).to.equal(false)
  })
})

describe('isDatabaseDown', () => {
  for (const [what, error] of [
    ['a lost connection', withCode('ECONNRESET')],
    ['a connection that fell silent', new DatabaseUnavailableError('no answer')],
    ['a connection that cannot be had', new Error('timeout exceeded when trying to connect')],
    ['a server that stops', withCode('57P01')],
    ['a full disk', withCode('53100')],
    ['a standby', withCode('25006')],
  ] as const) {
    it(`is true for ${what}`, () => {
      expect(isDatabaseDown(error)).to.equal(true)
      expect(isDatabaseDown(new QueryFailedError('SELECT 1', [], error))).to.equal(true)
    })
  }

  for (const [what, error] of [
    ['a statement that ran into its time limit', withCode('57014')],
    ['a lock that was not granted in time', withCode('55P03')],
    ['a transaction that took too long', withCode('25P03')],
    ['a deadlock', withCode('40P01')],
    ['an invalid statement', withCode('42601')],
    ['work that had no turn', new DatabaseBusyError('no turn', { isBegun: false })],
    ['work that takes too long', new DatabaseBusyError('no result', { isBegun: true })],
  ] as const) {
    it(`is false for ${what}`, () => {
      expect(isDatabaseDown(error)).to.equal(false)
    })
  }

  it('is false for a statement that ran into its time limit also as TypeORM wraps it', () => {
    expect(isDatabaseDown(new QueryFailedError('SELECT 1', [], withCode('57014')))).to.equal(false)
  })
})

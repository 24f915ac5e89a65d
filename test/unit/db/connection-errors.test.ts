import { expect } from 'chai'
import { QueryFailedError, QueryRunnerAlreadyReleasedError } from 'typeorm'
import { DatabaseUnavailableError, isDatabaseUnavailable } from '../../../src/db/connection-errors.ts'

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

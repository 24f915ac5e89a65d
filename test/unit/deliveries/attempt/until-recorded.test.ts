import { expect } from 'chai'
import { untilRecorded } from '../../../../src/deliveries/attempt/unrecorded-outcomes.ts'
import type { Logger } from '../../../../src/observability/logger.ts'
import { useMockTime } from '../../../helpers/use-mock-time.ts'

/** What a database, a socket, a pool or a bug of ours may throw. */
const ERRORS: [string, unknown][] = [
  ...['53100', '53200', '57014', '55P03', '58030', '28000', '28P01', '23505', '22003', '42501', 'XX000'].map(
    (code): [string, unknown] => [`SQLSTATE ${code}`, Object.assign(new Error('refused'), { code })],
  ),
  ['EMFILE', Object.assign(new Error('too many open files'), { code: 'EMFILE' })],
  ['a TypeError', new TypeError('x is undefined')],
  ['a text', 'no error at all'],
]

describe('recording an outcome', () => {
  const time = useMockTime()

  /** Fails so many times; returns what was counted and logged. */
  async function recordAfter(failures: number, error: unknown) {
    const levels: string[] = []
    const logger = { warn: () => levels.push('warn'), error: () => levels.push('error') } as unknown as Logger
    let tries = 0
    let errors = 0
    const record = (): Promise<string> =>
      tries++ < failures ? Promise.reject(error) : Promise.resolve('recorded')
    const metrics = { attemptNotRecorded: () => errors++ }
    const result = await untilRecorded(record, { logger, metrics }, 'a')
    return { result, errors, levels }
  }

  for (const [what, error] of ERRORS)
    it(`is retried after ${what}`, async () => {
      expect(await time.until(recordAfter(1, error))).to.deep.equal({
        result: 'recorded',
        errors: 1,
        levels: [],
      })
    })

  it('logs repeated refusals once, as an error unless the database is unavailable', async () => {
    const constraint = Object.assign(new Error('refused'), { code: '23514' })
    const full = Object.assign(new Error('disk full'), { code: '53100' })
    const both = Promise.all([recordAfter(4, constraint), recordAfter(4, full)])
    const [refused, away] = await time.until(both)
    expect(refused.levels).to.deep.equal(['error'])
    expect(away.levels).to.deep.equal(['warn'])
  })
})

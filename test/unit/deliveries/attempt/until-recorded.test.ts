import { expect } from 'chai'
import { untilRecorded } from '../../../../src/deliveries/attempt/until-recorded.ts'
import type { Logger } from '../../../../src/logger.ts'
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

describe('an outcome that is to be recorded', () => {
  const time = useMockTime()

  /** Fails so many times; returns what was counted and logged. */
  async function recordAfter(failures: number, error: unknown) {
    const levels: string[] = []
    const logger = { warn: () => levels.push('warn'), error: () => levels.push('error') } as unknown as Logger
    let tries = 0
    let errors = 0
    const record = (): Promise<string> =>
      tries++ < failures ? Promise.reject(error) : Promise.resolve('recorded')
    const result = await untilRecorded(record, { logger, deliveryId: 'a', onError: () => (errors += 1) })
    return { result, errors, levels }
  }

  for (const [what, error] of ERRORS)
    it(`is tried again after ${what}`, async () => {
      expect(await time.until(recordAfter(1, error))).to.deep.equal({
        result: 'recorded',
        errors: 1,
        levels: [],
      })
    })

  it('is logged once when it was refused a few times, as an error unless the database is away', async () => {
    const constraint = Object.assign(new Error('refused'), { code: '23514' })
    const full = Object.assign(new Error('disk full'), { code: '53100' })
    const both = Promise.all([recordAfter(4, constraint), recordAfter(4, full)])
    const [refused, away] = await time.until(both)
    expect(refused.levels).to.deep.equal(['error'])
    expect(away.levels).to.deep.equal(['warn'])
  })
})

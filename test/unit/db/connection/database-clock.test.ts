import { expect } from 'chai'
import { createDatabaseClock } from '../../../../src/db/connection/database-clock.ts'
import { silentLogger } from '../../../helpers/silent-logger.ts'

const HOUR = 3_600_000

describe('the database clock', () => {
  let monotonicMs: number
  let databaseMs: number
  /** How long each next round trip takes, there and back. */
  let trips: [number, number][]

  beforeEach(() => {
    monotonicMs = 1_000
    databaseMs = 1_700_000_000_000
    trips = []
  })

  const pass = (ms: number): void => {
    monotonicMs += ms
    databaseMs += ms
  }
  const create = () =>
    createDatabaseClock({
      logger: silentLogger,
      monotonicMs: () => monotonicMs,
      readDatabaseMs: () => {
        const [there, back] = trips.shift() ?? [1, 1]
        pass(there)
        const read = databaseMs
        pass(back)
        return Promise.resolve(read)
      },
    })
  async function measured() {
    const clock = create()
    await clock.start()
    clock.stop()
    return clock
  }

  it('is as exact as the shortest round trip', async () => {
    trips = [
      [300, 5],
      [1, 2],
      [4, 200],
    ]
    const clock = await measured()
    expect(clock.nowMs() - databaseMs).to.be.within(-1.5, 1.5)
  })

  it('follows the monotonic clock between measurements', async () => {
    const clock = await measured()
    const before = clock.nowMs()
    pass(HOUR)
    expect(clock.nowMs() - before).to.equal(HOUR)
  })

  it('follows a step of the database with the next measurement', async () => {
    const clock = create()
    await clock.start()
    databaseMs += HOUR
    await clock.start()
    clock.stop()
    expect(clock.nowMs() - databaseMs).to.be.within(-2, 2)
  })

  it('keeps its last measurement while the database is unavailable', async () => {
    const clock = await measured()
    const before = clock.nowMs() - databaseMs
    const away = createDatabaseClock({
      logger: silentLogger,
      readDatabaseMs: () => Promise.reject(new Error('Connection terminated')),
    })
    await away.start()
    away.stop()
    expect(Math.abs(away.nowMs() - Date.now())).to.be.below(1_000)
    expect(clock.nowMs() - databaseMs).to.equal(before)
  })
})

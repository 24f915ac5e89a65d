import { expect } from 'chai'
import { createDatabaseClock } from '../../src/db/database-clock.ts'
import { waitUntilDue } from '../../src/deliveries/attempt/wait-until-due.ts'
import { silentLogger } from '../helpers/silent-logger.ts'
import { useMockTime } from '../helpers/use-mock-time.ts'

const HOUR = 3_600_000
const never = new AbortController().signal

describe('the clock of the database', () => {
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

  it('is known as exactly as the shortest round trip tells', async () => {
    trips = [
      [300, 5],
      [1, 2],
      [4, 200],
    ]
    const clock = await measured()
    expect(clock.nowMs() - databaseMs).to.be.within(-1.5, 1.5)
  })

  it('goes on by the monotonic clock between measurements', async () => {
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

  it('keeps what it knows while the database is away', async () => {
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

describe('a retry that is held until its instant', () => {
  const time = useMockTime()

  /** A clock that is stepped once, so many ms after the hold began. */
  const stepped = (stepMs: number) => {
    const startedAtMs = performance.now()
    const nowMs = (): number => {
      const passedMs = performance.now() - startedAtMs
      return 1_000_000 + passedMs + (passedMs > 50 ? stepMs : 0)
    }
    return { clock: { nowMs }, passedMs: () => performance.now() - startedAtMs }
  }

  it('is let go by the clock of the database, and not before', async () => {
    const { clock, passedMs } = stepped(0)
    await time.until(waitUntilDue(clock, { untilMs: 1_000_200, atMostMs: 5_000 }, never))
    expect(passedMs()).to.be.within(200, 1_000)
  })

  it('is held no longer than it may be, also when the clock goes back by an hour meanwhile', async () => {
    const { clock, passedMs } = stepped(-HOUR)
    await time.until(waitUntilDue(clock, { untilMs: 1_000_200, atMostMs: 400 }, never))
    expect(passedMs()).to.be.within(399, 1_200)
  })

  it('is let go at once when the clock goes forward by an hour meanwhile', async () => {
    const { clock, passedMs } = stepped(HOUR)
    await time.until(waitUntilDue(clock, { untilMs: 1_000_200, atMostMs: 5_000 }, never))
    expect(passedMs()).to.be.below(1_000)
  })
})

import { expect } from 'chai'
import { waitUntilDue } from '../../../../src/deliveries/attempt/wait-until-due.ts'
import { useMockTime } from '../../../helpers/use-mock-time.ts'

const HOUR = 3_600_000
const never = new AbortController().signal

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

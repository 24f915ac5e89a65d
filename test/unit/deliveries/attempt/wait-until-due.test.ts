import { expect } from 'chai'
import { waitUntilDue } from '../../../../src/db/connection/database-clock.ts'
import { useMockTime } from '../../../helpers/use-mock-time.ts'

const HOUR = 3_600_000
const never = new AbortController().signal

describe('a retry that waits until it is due', () => {
  const time = useMockTime()

  /** A clock that is stepped once, this many ms after the wait began. */
  const stepped = (stepMs: number) => {
    const startedAtMs = performance.now()
    const nowMs = (): number => {
      const passedMs = performance.now() - startedAtMs
      return 1_000_000 + passedMs + (passedMs > 50 ? stepMs : 0)
    }
    return { clock: { nowMs }, passedMs: () => performance.now() - startedAtMs }
  }

  it("starts when the database's clock says that it is due, and not earlier", async () => {
    const { clock, passedMs } = stepped(0)
    await time.until(waitUntilDue(clock, { dueAtMs: 1_000_200, maxWaitMs: 5_000 }, never))
    expect(passedMs()).to.be.within(200, 1_000)
  })

  it('waits no longer than its maximum, even when the clock is set back by an hour meanwhile', async () => {
    const { clock, passedMs } = stepped(-HOUR)
    await time.until(waitUntilDue(clock, { dueAtMs: 1_000_200, maxWaitMs: 400 }, never))
    expect(passedMs()).to.be.within(399, 1_200)
  })

  it('starts at once when the clock is set forward by an hour meanwhile', async () => {
    const { clock, passedMs } = stepped(HOUR)
    await time.until(waitUntilDue(clock, { dueAtMs: 1_000_200, maxWaitMs: 5_000 }, never))
    expect(passedMs()).to.be.below(1_000)
  })
})

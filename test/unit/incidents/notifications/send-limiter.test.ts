import { expect } from 'chai'
import { createSendLimiter } from '../../../../src/incidents/notifications/send-due.ts'
import { useMockTime } from '../../../helpers/use-mock-time.ts'

describe('createSendLimiter', () => {
  const time = useMockTime()
  const bound = (queue = 10, waitMs = 1_000) => {
    const limiter = createSendLimiter({ slots: 2, queue, waitMs })
    /** Returns the function that ends the message; null where it was not sent. */
    return () =>
      new Promise<(() => void) | null>((resolve) => {
        void limiter(() => new Promise(resolve)).then(() => resolve(null))
      })
  }

  it('admits as many as it has slots, and the next in order when one is freed', async () => {
    const enter = bound()
    const [first, second] = [await enter(), await enter()]
    const entered: string[] = []
    const third = enter().then((leave) => (entered.push('third'), leave))
    const fourth = enter().then((leave) => (entered.push('fourth'), leave))
    await Promise.resolve()
    expect(entered).to.deep.equal([])
    first!()
    expect(await third).not.to.equal(null)
    expect(entered).to.deep.equal(['third'])
    second!()
    await fourth
    expect(entered).to.deep.equal(['third', 'fourth'])
  })

  it('refuses a caller that waited for too long, and admits the next one', async () => {
    const enter = bound(10, 20)
    const [first] = [await enter(), await enter()]
    expect(await time.until(enter())).to.equal(null)
    first!()
    expect(await enter()).not.to.equal(null)
  })

  it('refuses at once when the queue is full', async () => {
    const enter = bound(1, 60_000)
    const [first] = [await enter(), await enter()]
    const queued = enter()
    expect(await enter()).to.equal(null)
    first!()
    expect(await queued).not.to.equal(null)
  })
})

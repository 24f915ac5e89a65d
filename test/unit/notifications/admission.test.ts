import { expect } from 'chai'
import { createAdmission } from '../../../src/notifications/admission.ts'
import { useMockTime } from '../../helpers/use-mock-time.ts'

describe('createAdmission', () => {
  const time = useMockTime()
  const bound = (queue = 10, waitMs = 1_000) => {
    const admission = createAdmission({ places: 2, queue, waitMs })
    return () => admission.enter()
  }

  it('lets in as many as there are places, and the next when one leaves, in order', async () => {
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

  it('turns away who would wait for too long, and gives the place to somebody else', async () => {
    const enter = bound(10, 20)
    const [first] = [await enter(), await enter()]
    expect(await time.until(enter())).to.equal(null)
    first!()
    expect(await enter()).not.to.equal(null)
  })

  it('turns away at once when the queue is full', async () => {
    const enter = bound(1, 60_000)
    const [first] = [await enter(), await enter()]
    const queued = enter()
    expect(await enter()).to.equal(null)
    first!()
    expect(await queued).not.to.equal(null)
  })

  it('makes no second place of one that is left twice', async () => {
    const enter = bound(0)
    const [first] = [await enter(), await enter()]
    first!()
    first!()
    expect(await enter()).not.to.equal(null)
    expect(await enter()).to.equal(null)
  })
})

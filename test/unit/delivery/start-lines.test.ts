import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import { createPacedStarts, createStartLines } from '../../../src/delivery/start-lines.ts'

/** Early by as much as a timer of Node may be. */
const TIMER_MS = 2

function deliveryOf(webhookId: string): DeliveryToStart {
  const ids = { deliveryId: crypto.randomUUID(), organisationId: 'o', webhookId }
  return { ...ids, eventKey: 'k', url: 'u', troubled: false, readAtMs: 0, fresh: null }
}

describe('the lines before the engine', () => {
  function create(paceMs: number) {
    const begun: { webhookId: string; apart: boolean; atMs: number }[] = []
    const lines = createStartLines({
      concurrency: 8,
      hasRoom: () => true,
      paceMs: () => paceMs,
      run({ webhookId }, apart) {
        begun.push({ webhookId, apart, atMs: performance.now() })
        return Promise.resolve()
      },
    })
    const gaps = (webhookId: string): number[] => {
      const times = begun.filter((one) => one.webhookId === webhookId).map(({ atMs }) => atMs)
      return times.slice(1).map((atMs, index) => atMs - times[index]!)
    }
    return { lines, begun, gaps }
  }

  it('hands over of a webhook that is not well as fast as its endpoint may answer, and each webhook for itself', async () => {
    const { lines, begun, gaps } = create(30)
    for (let count = 0; count < 4; count++) for (const id of ['a', 'b']) lines.add(deliveryOf(id), true)
    expect(begun.map(({ webhookId }) => webhookId)).to.deep.equal(['a', 'b'])
    await delay(200)
    expect(begun).to.have.length(8)
    for (const gap of [...gaps('a'), ...gaps('b')]) expect(gap).to.be.at.least(30 - TIMER_MS)
  })

  it('hands over at once of one that is well, and of one that fails quickly', async () => {
    const { lines, begun } = create(0.2)
    for (let count = 0; count < 20; count++) {
      lines.add(deliveryOf('well'), false)
      lines.add(deliveryOf('failing'), true)
    }
    await delay(20)
    expect(begun).to.have.length(40)
    expect(begun.filter(({ apart }) => apart).every(({ webhookId }) => webhookId === 'failing')).to.equal(
      true,
    )
  })

  it('tells of both what waits, and of the well ones only what could go', async () => {
    const { lines } = create(10_000)
    const kept = [deliveryOf('a'), deliveryOf('a')]
    for (const delivery of [deliveryOf('a'), ...kept]) lines.add(delivery, true)
    await lines.idle()
    expect([lines.waiting(), lines.waitingOf('a'), lines.ready(), lines.inFlight()]).to.deep.equal([
      2, 2, 0, 0,
    ])
    expect(lines.drain()).to.deep.equal(kept)
    expect(lines.waiting()).to.equal(0)
  })
})

describe('paced starts', () => {
  it('begin at once, then one after the other, and none later than it may', async () => {
    const starts = createPacedStarts()
    const startedAtMs = performance.now()
    const waits: number[] = []
    for (let count = 0; count < 100; count++)
      starts.add(() => Promise.resolve(waits.push(performance.now() - startedAtMs)))
    await starts.idle()
    expect(waits).to.have.length(100)
    expect(waits[0]).to.be.below(10)
    for (const [index, wait] of waits.slice(0, 20).entries())
      expect(wait).to.be.at.least(18 * index - TIMER_MS)
    expect(Math.max(...waits)).to.be.within(600 - TIMER_MS, 900)
  })
})

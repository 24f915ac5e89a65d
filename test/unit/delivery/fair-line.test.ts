import { expect } from 'chai'
import { createFairLine } from '../../../src/delivery/fair-line.ts'

describe('the start line', () => {
  /** A line whose items end when they are told to. */
  function createLine(options: { concurrency?: number; hasRoom?: (webhookId: string) => boolean } = {}) {
    const begun: string[] = []
    const ending = new Map<string, () => void>()
    const line = createFairLine<string>({
      concurrency: 1,
      hasRoom: () => true,
      ...options,
      run: (item) =>
        new Promise((resolve) => {
          begun.push(item)
          ending.set(item, resolve)
        }),
    })
    const end = async (item: string): Promise<void> => {
      ending.get(item)!()
      // What follows on the end of an item has happened after the next turn of the event loop.
      await new Promise(setImmediate)
    }
    const add = (webhookId: string, ...items: string[]): void => {
      for (const item of items) line.add(webhookId, item)
    }
    return { line, begun, end, add }
  }

  it('begins at once while fewer are under way than may be', () => {
    const { line, begun, add } = createLine({ concurrency: 2 })
    add('a', 'a1', 'a2', 'a3')
    expect(begun).to.deep.equal(['a1', 'a2'])
    expect([line.inFlight(), line.waiting(), line.ready(), line.waitingOf('a')]).to.deep.equal([2, 1, 1, 1])
  })

  it('gives the next turn to the webhook whose last one is longest ago, each in its own order', async () => {
    const { begun, end, add } = createLine()
    add('a', 'a1', 'a2', 'a3')
    add('b', 'b1', 'b2')
    add('c', 'c1')
    for (const item of ['a1', 'a2', 'b1', 'c1', 'a3', 'b2']) await end(item)
    expect(begun).to.deep.equal(['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
  })

  it('passes over a webhook without room, and counts none of its items as ready', () => {
    const { line, begun, add } = createLine({ concurrency: 5, hasRoom: (webhookId) => webhookId !== 'full' })
    add('full', 'f1', 'f2')
    add('b', 'b1')
    expect(begun).to.deep.equal(['b1'])
    expect([line.waiting(), line.ready(), line.waitingOf('full')]).to.deep.equal([2, 0, 2])
  })

  it('looks at a webhook again when it is told that there may be room', async () => {
    let room = 0
    const { line, begun, end, add } = createLine({ concurrency: 5, hasRoom: () => room-- > 0 })
    add('a', 'a1', 'a2', 'a3')
    expect(begun).to.have.length(0)
    room = 1
    line.look('a')
    expect(begun).to.deep.equal(['a1'])
    await end('a1')
    expect(begun).to.deep.equal(['a1'])
    room = 2
    line.look('a')
    expect(begun).to.deep.equal(['a1', 'a2', 'a3'])
    line.look('unknown')
    expect(line.ready()).to.equal(0)
  })

  it('hands out all that wait when it is drained, and begins with none of them', async () => {
    const { line, begun, end, add } = createLine()
    add('a', 'a1', 'a2')
    add('b', 'b1')
    expect(line.drain()).to.have.members(['a2', 'b1'])
    expect([line.waiting(), line.ready(), line.inFlight()]).to.deep.equal([0, 0, 1])
    await end('a1')
    expect(begun).to.deep.equal(['a1'])
  })

  it('is idle when the last one has ended', async () => {
    const { line, end, add } = createLine({ concurrency: 2 })
    add('a', 'a1', 'a2')
    let isIdle = false
    const idle = line.idle().then(() => {
      isIdle = true
    })
    await end('a1')
    expect(isIdle).to.equal(false)
    await end('a2')
    await idle
    expect(line.inFlight()).to.equal(0)
  })
})

import { expect } from 'chai'
import { createRoundRobin, createRoundRobinQueue } from '../../src/round-robin-queue.ts'

describe('a round-robin queue', () => {
  /** A queue whose items end on request. */
  function createQueue(options: { concurrency?: number; hasRoom?: (webhookId: string) => boolean } = {}) {
    const begun: string[] = []
    const ending = new Map<string, () => void>()
    const queue = createRoundRobinQueue<string>({
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
      // What follows on the end of an item has happened after the next iteration of the event loop.
      await new Promise(setImmediate)
    }
    const add = (webhookId: string, ...items: string[]): void => {
      for (const item of items) queue.add(webhookId, item)
    }
    return { queue, begun, end, add }
  }

  it('runs items at once while it has slots', () => {
    const { queue, begun, add } = createQueue({ concurrency: 2 })
    add('a', 'a1', 'a2', 'a3')
    expect(begun).to.deep.equal(['a1', 'a2'])
    expect([queue.inFlight(), queue.size(), queue.sizeOf('a')]).to.deep.equal([2, 1, 1])
  })

  it('serves the key that was served longest ago, each in its own order', async () => {
    const { begun, end, add } = createQueue()
    add('a', 'a1', 'a2', 'a3')
    add('b', 'b1', 'b2')
    add('c', 'c1')
    for (const item of ['a1', 'a2', 'b1', 'c1', 'a3', 'b2']) await end(item)
    expect(begun).to.deep.equal(['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
  })

  it('skips a key without capacity', () => {
    const { queue, begun, add } = createQueue({
      concurrency: 5,
      hasRoom: (webhookId) => webhookId !== 'full',
    })
    add('full', 'f1', 'f2')
    add('b', 'b1')
    expect(begun).to.deep.equal(['b1'])
    expect([queue.size(), queue.sizeOf('full')]).to.deep.equal([2, 2])
  })

  it('serves a key again when it is notified and has capacity', async () => {
    let room = 0
    const { queue, begun, end, add } = createQueue({ concurrency: 5, hasRoom: () => room-- > 0 })
    add('a', 'a1', 'a2', 'a3')
    expect(begun).to.have.length(0)
    room = 1
    queue.wake('a')
    expect(begun).to.deep.equal(['a1'])
    await end('a1')
    expect(begun).to.deep.equal(['a1'])
    room = 2
    queue.wake('a')
    expect(begun).to.deep.equal(['a1', 'a2', 'a3'])
    queue.wake('unknown')
  })

  it('runs no more than its slots where an item wakes the queue as it begins', async () => {
    let highest = 0
    let begun = 0
    const ends: (() => void)[] = []
    const queue = createRoundRobinQueue<string>({
      concurrency: 4,
      hasRoom: () => true,
      run: () => {
        highest = Math.max(highest, ++begun - ends.length)
        queue.wake()
        return new Promise((resolve) => {
          ends.push(resolve)
        })
      },
    })
    for (let index = 0; index < 50; index++) queue.add(`key-${index}`, `item-${index}`)
    expect([queue.inFlight(), queue.size(), highest]).to.deep.equal([4, 46, 1])
    ends[0]!()
    await new Promise(setImmediate)
    expect([queue.inFlight(), queue.size(), highest]).to.deep.equal([4, 45, 1])
  })

  it('returns all waiting items when it is drained, and runs none of them', async () => {
    const { queue, begun, end, add } = createQueue()
    add('a', 'a1', 'a2')
    add('b', 'b1')
    expect(queue.drain()).to.have.members(['a2', 'b1'])
    expect([queue.size(), queue.inFlight()]).to.deep.equal([0, 1])
    await end('a1')
    expect(begun).to.deep.equal(['a1'])
  })

  it('serves every key again that has capacity when it is notified without a key', () => {
    let hasRoom = false
    const { queue, begun, add } = createQueue({ concurrency: 5, hasRoom: () => hasRoom })
    add('a', 'a1')
    add('b', 'b1')
    hasRoom = true
    queue.wake()
    expect(begun).to.deep.equal(['a1', 'b1'])
  })

  it('is idle when the last item has ended', async () => {
    const { queue, end, add } = createQueue({ concurrency: 2 })
    add('a', 'a1', 'a2')
    let isIdle = false
    const idle = queue.idle().then(() => {
      isIdle = true
    })
    await end('a1')
    expect(isIdle).to.equal(false)
    await end('a2')
    await idle
    expect(queue.inFlight()).to.equal(0)
  })
})

describe('a round-robin', () => {
  it('keeps the next item, and the turn of its key, when it is not wanted', () => {
    const items = createRoundRobin<string>()
    for (const item of ['a1', 'a2', 'b1']) items.add(item.slice(0, 1), item)
    expect(items.take()).to.equal('a1')
    expect(items.take((next) => next !== 'b1')).to.equal(null)
    expect([items.take(), items.take(), items.take()]).to.deep.equal(['b1', 'a2', null])
  })

  it('returns the items that are asked for, and keeps the order of the others', () => {
    const items = createRoundRobin<string>()
    for (const item of ['a1', 'a2', 'a3', 'b1']) items.add(item.slice(0, 1), item)
    expect(items.drain((item) => ['a2', 'b1'].includes(item))).to.deep.equal(['a2', 'b1'])
    expect([items.size(), items.sizeOf('a'), items.sizeOf('b')]).to.deep.equal([2, 2, 0])
    expect([items.take(), items.take(), items.take()]).to.deep.equal(['a1', 'a3', null])
  })
})

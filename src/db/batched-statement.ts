import pLimit from 'p-limit'
import { DatabaseUnavailableError, isDatabaseUnavailable, isLockTimeout } from './connection-errors.ts'

/** Runs the items of many concurrent callers in one statement and one commit. */
export type BatchedStatement<Item, Result> = (item: Item) => Promise<Result>

type Waiting<Item, Result> = {
  item: Item
  resolve: (result: Result) => void
  reject: (reason: unknown) => void
  hasTimedOut: boolean
}

/**
 * After this time a group counts as slow, for example because it waits for a lock: the next one no longer waits for it.
 */
const SLOW_GROUP_MS = 10

/**
 * How long an item waits for its result. Longer than the statement timeout, so that most items get the result of their
 * statement; short enough to answer a request within ten seconds.
 */
const ITEM_TIMEOUT_MS = 9_000

/** Maximum number of waiting items: a few seconds of the highest rate that was measured. */
const MAX_QUEUED = 10_000

/** Connections that the items of one failed group take at once. */
const CONCURRENT_ONES = 4

/**
 * Creates a function that runs items in groups. An item runs at once while no group runs; items that arrive meanwhile
 * form the next groups of up to `maxBatchSize`, so groups grow with the load: a commit of a hundred costs little more
 * than one of ten. While a group is slow others may start, up to `maxConcurrent` in all. With `lingerMs` an item that
 * nobody waits for runs that much later, so that others can join it. `runAll` returns the results in the order of its
 * items, from one statement: all of it is committed, or nothing.
 * When `runAll` fails, each item is run again with `runOne`, so that one caller's error, or a row that another
 * transaction keeps locked, fails that item only; an unavailable database fails all of them.
 * Rejects with DatabaseUnavailableError when no result arrives within `timeoutMs` (the item may still be committed),
 * and at once when `maxQueued` items wait already (it is not).
 */
export function createBatchedStatement<Item, Result>(options: {
  runAll: (items: Item[]) => Promise<Result[]>
  runOne: (item: Item) => Promise<Result>
  maxConcurrent: number
  maxBatchSize: number
  timeoutMs?: number
  maxQueued?: number
  lingerMs?: number
}): BatchedStatement<Item, Result> {
  const {
    runAll,
    runOne,
    maxConcurrent,
    maxBatchSize,
    timeoutMs = ITEM_TIMEOUT_MS,
    maxQueued = MAX_QUEUED,
    lingerMs = 0,
  } = options
  const queue: Waiting<Item, Result>[] = []
  const ones = pLimit(CONCURRENT_ONES)
  let underWay = 0
  let nextGroup: NodeJS.Timeout | null = null

  async function run(group: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await runAll(group.map(({ item }) => item))
      group.forEach(({ resolve, reject }, index) => {
        if (index in results) resolve(results[index] as Result)
        else reject(new Error('a grouped statement gave too few results'))
      })
    } catch (error) {
      if (isDatabaseUnavailable(error) && !isLockTimeout(error)) group.forEach(({ reject }) => reject(error))
      else await ones.map(group, ({ item, resolve, reject }) => runOne(item).then(resolve, reject))
    }
  }

  function go(): void {
    if (nextGroup !== null) clearTimeout(nextGroup)
    nextGroup = null
    if (underWay >= maxConcurrent) return
    const group = takeGroup(queue, maxBatchSize)
    if (group.length === 0) return
    underWay++
    void run(group).finally(() => {
      underWay--
      next()
    })
    next()
  }

  function next(): void {
    if (queue.length === 0) return
    if (underWay === 0 && (lingerMs === 0 || queue.length >= maxBatchSize)) go()
    else nextGroup ??= setTimeout(go, underWay === 0 ? lingerMs : SLOW_GROUP_MS)
  }

  return (item) =>
    new Promise((resolve, reject) => {
      if (queue.length >= maxQueued) {
        reject(new DatabaseUnavailableError(`${queue.length} wait for the database already`))
        return
      }
      const timer = setTimeout(() => {
        waiting.hasTimedOut = true
        reject(new DatabaseUnavailableError(`no result from the database within ${timeoutMs} ms`))
      }, timeoutMs)
      const waiting: Waiting<Item, Result> = {
        item,
        hasTimedOut: false,
        resolve(result) {
          clearTimeout(timer)
          resolve(result)
        },
        reject(reason) {
          clearTimeout(timer)
          reject(reason)
        },
      }
      queue.push(waiting)
      next()
    })
}

/** Takes the next items out of the queue; those whose caller has gone are dropped. */
function takeGroup<Item, Result>(
  queue: Waiting<Item, Result>[],
  maxBatchSize: number,
): Waiting<Item, Result>[] {
  const group: Waiting<Item, Result>[] = []
  while (group.length < maxBatchSize) {
    const next = queue.shift()
    if (next === undefined) break
    if (!next.hasTimedOut) group.push(next)
  }
  return group
}

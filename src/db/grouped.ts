import pLimit from 'p-limit'
import { DatabaseUnavailableError, isDatabaseAway, isLockTimeout } from './connection-errors.ts'

/** Makes one statement, and one commit, of what many callers want at the same time. */
export type Grouped<Item, Result> = (item: Item) => Promise<Result>

type Waiting<Item, Result> = {
  item: Item
  resolve: (result: Result) => void
  reject: (reason: unknown) => void
  hasTimedOut: boolean
}

/** A group that takes longer than this, as one does that waits for a lock, is no reason for the next one to wait. */
const PATIENCE_MS = 10

/**
 * How long an item waits for its result. Longer than one statement may take, so that most learn from the statement
 * itself what became of them; short enough for a request to be answered within ten seconds.
 */
const ITEM_TIMEOUT_MS = 9_000

/** Items that wait for a group, at most: what comes in seconds at the highest rate that was measured. */
const MAX_QUEUED = 10_000

/** Connections that the items of one failed group take at once. */
const CONCURRENT_ONES = 4

/**
 * An item that finds no group under way goes at once, alone; those that come meanwhile wait for its end and go together,
 * `most` at a time. So the busier it is the larger the groups are: a commit of a hundred costs little more than one of
 * ten. Beside a group that takes long others may go, `lanes` in all. `runAll` gives the results in the order of its
 * items, in one statement: all of it is committed, or nothing.
 * Where it fails each item is run again by itself with `runOne`, so that one caller's error, or the row that another
 * transaction keeps locked, is nobody else's; a database that is away is everybody's.
 * Rejects with DatabaseUnavailableError where no result came within `timeoutMs` (the item may be committed all the
 * same), and at once where `maxQueued` items wait already (it is not).
 */
export function createGrouped<Item, Result>(options: {
  runAll: (items: Item[]) => Promise<Result[]>
  runOne: (item: Item) => Promise<Result>
  lanes: number
  most: number
  timeoutMs?: number
  maxQueued?: number
}): Grouped<Item, Result> {
  const { runAll, runOne, lanes, most, timeoutMs = ITEM_TIMEOUT_MS, maxQueued = MAX_QUEUED } = options
  const queue: Waiting<Item, Result>[] = []
  const ones = pLimit(CONCURRENT_ONES)
  let underWay = 0
  let patience: NodeJS.Timeout | null = null

  async function run(group: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await runAll(group.map(({ item }) => item))
      group.forEach(({ resolve, reject }, index) => {
        if (index in results) resolve(results[index] as Result)
        else reject(new Error('a grouped statement gave too few results'))
      })
    } catch (error) {
      if (isDatabaseAway(error) && !isLockTimeout(error)) group.forEach(({ reject }) => reject(error))
      else await ones.map(group, ({ item, resolve, reject }) => runOne(item).then(resolve, reject))
    }
  }

  function go(): void {
    if (patience !== null) clearTimeout(patience)
    patience = null
    if (underWay >= lanes) return
    const group = takeGroup(queue, most)
    if (group.length === 0) return
    underWay++
    void run(group).finally(() => {
      underWay--
      next()
    })
    next()
  }

  function next(): void {
    if (underWay === 0) go()
    else if (queue.length > 0) patience ??= setTimeout(go, PATIENCE_MS)
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
function takeGroup<Item, Result>(queue: Waiting<Item, Result>[], most: number): Waiting<Item, Result>[] {
  const group: Waiting<Item, Result>[] = []
  while (group.length < most) {
    const next = queue.shift()
    if (next === undefined) break
    if (!next.hasTimedOut) group.push(next)
  }
  return group
}

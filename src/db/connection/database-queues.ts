import pLimit from 'p-limit'
import { createFairQueue, createRoundRobin, type RoundRobin } from '../../round-robin-queue.ts'
import { isDatabaseDown, DatabaseBusyError } from './connection-errors.ts'

/** A caller that waits for its work to be begun, and then for its result. */
type Deadline<Result> = {
  /** Called when the work begins. False when the caller has been rejected: the work is not to be done. */
  begin: () => boolean
  resolve: (result: Result) => void
  reject: (reason: unknown) => void
}

/**
 * Calls `wait` and returns its result. Rejects with DatabaseBusyError when the work has not begun within
 * `startTimeoutMs`, or gives no result within `timeoutMs`.
 */
function withDeadline<Result>(
  { startTimeoutMs, timeoutMs }: { startTimeoutMs: number; timeoutMs: number },
  wait: (deadline: Deadline<Result>) => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let isBegun = false
    let hasTimedOut = false
    const timeOut = (afterMs: number): void => {
      hasTimedOut = true
      const waitedFor = isBegun ? 'no result from' : 'no turn at'
      reject(new DatabaseBusyError(`${waitedFor} the database within ${afterMs} ms`, { isBegun }))
    }
    let timer = setTimeout(() => {
      if (!isBegun || timeoutMs <= startTimeoutMs) return timeOut(startTimeoutMs)
      timer = setTimeout(() => timeOut(timeoutMs), timeoutMs - startTimeoutMs)
    }, startTimeoutMs)
    wait({
      begin: () => (isBegun = !hasTimedOut),
      resolve(result) {
        clearTimeout(timer)
        resolve(result)
      },
      reject(reason) {
        clearTimeout(timer)
        reject(reason instanceof Error ? reason : new Error(String(reason)))
      },
    })
  })
}

/** Returns a promise that is rejected: `count` items wait already, so that no more may. */
function refuse(count: number): Promise<never> {
  return Promise.reject(new DatabaseBusyError(`${count} wait for the database already`, { isBegun: false }))
}

/** Runs the items of many concurrent callers in one statement and one commit. */
export type BatchedStatement<Item, Result> = (item: Item) => Promise<Result>

type Waiting<Item, Result> = Deadline<Result> & { item: Item; rows: number }

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
 * no caller waits for runs that much later, so that others can join it. `runAll` returns the results in the order of its
 * items, from one statement: all of it is committed, or nothing.
 * A group takes the keys of `keyOf` in turn, and has no more rows than `maxRows` by what `rowsOf` expects of each item;
 * an item that has more runs alone.
 * When `runAll` fails, each item is run again by itself, so that one caller's error, a row that another transaction
 * keeps locked, or a statement that took too long, fails that item only; a database that is down fails all of them.
 * Rejects with DatabaseBusyError when an item has not begun within `startTimeoutMs` or `maxQueued` wait already (nothing
 * is committed), and when no result arrives within `timeoutMs` (it may still be committed).
 */
export function createBatchedStatement<Item, Result>(options: {
  runAll: (items: Item[]) => Promise<Result[]>
  maxConcurrent: number
  maxBatchSize: number
  keyOf?: (item: Item) => string
  rowsOf?: (item: Item) => number
  maxRows?: number
  startTimeoutMs?: number
  timeoutMs?: number
  maxQueued?: number
  lingerMs?: number
}): BatchedStatement<Item, Result> {
  const { runAll, maxConcurrent, maxBatchSize } = options
  const { keyOf = () => '', rowsOf = () => 1, maxRows = Infinity } = options
  const { timeoutMs = ITEM_TIMEOUT_MS, startTimeoutMs = timeoutMs } = options
  const { maxQueued = MAX_QUEUED, lingerMs = 0 } = options
  const queue = createRoundRobin<Waiting<Item, Result>>()
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
      // What ran alone has failed for itself.
      if (group.length === 1 || isDatabaseDown(error)) group.forEach(({ reject }) => reject(error))
      else await ones.map(group, runAlone)
    }
  }

  async function runAlone(waiting: Waiting<Item, Result>): Promise<void> {
    if (waiting.begin()) await run([waiting])
  }

  function go(): void {
    if (nextGroup !== null) clearTimeout(nextGroup)
    nextGroup = null
    if (underWay >= maxConcurrent) return
    const group = takeGroup(queue, maxBatchSize, maxRows)
    if (group.length === 0) return
    underWay++
    void run(group).finally(() => {
      underWay--
      next()
    })
    next()
  }

  function next(): void {
    if (queue.size() === 0) return
    if (underWay === 0 && (lingerMs === 0 || queue.size() >= maxBatchSize)) go()
    else nextGroup ??= setTimeout(go, underWay === 0 ? lingerMs : SLOW_GROUP_MS)
  }

  return (item) => {
    if (queue.size() >= maxQueued) return refuse(queue.size())
    return withDeadline({ startTimeoutMs, timeoutMs }, (deadline) => {
      queue.add(keyOf(item), { ...deadline, item, rows: rowsOf(item) })
      next()
    })
  }
}

/** Takes the next items out of the queue; those whose caller has gone are dropped. */
function takeGroup<Item, Result>(
  queue: RoundRobin<Waiting<Item, Result>>,
  maxBatchSize: number,
  maxRows: number,
): Waiting<Item, Result>[] {
  const group: Waiting<Item, Result>[] = []
  let rows = 0
  while (group.length < maxBatchSize) {
    const next = queue.take((waiting) => group.length === 0 || rows + waiting.rows <= maxRows)
    if (next === null) break
    if (!next.begin()) continue
    group.push(next)
    rows += next.rows
  }
  return group
}

/** Runs `work` when it is the turn of `key`. */
export type FairLimiter = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>

/**
 * Runs `concurrency` pieces of work at once, `perKey` of one key; the next one is of the key that was served longest ago.
 * Rejects with DatabaseBusyError when the work has not begun within `startTimeoutMs` or `maxQueued` wait already (it is
 * never begun then), and when it gives no result within `timeoutMs` (it goes on, and holds its place).
 */
export function createFairLimiter(options: {
  concurrency: number
  perKey: number
  startTimeoutMs: number
  timeoutMs: number
  maxQueued: number
}): FairLimiter {
  const { maxQueued } = options
  const queue = createFairQueue(options)

  return <Result>(key: string, work: () => Promise<Result>) => {
    if (queue.size() >= maxQueued) return refuse(queue.size())
    return withDeadline<Result>(options, ({ begin, resolve, reject }) => {
      const run = async (): Promise<void> => {
        if (begin()) await work().then(resolve, reject)
      }
      queue.add(key, { key, run })
    })
  }
}

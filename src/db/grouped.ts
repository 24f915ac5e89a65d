import { isDatabaseAway } from './connection-errors.ts'

/** Makes one statement, and one commit, of what many callers want at the same time. */
export type Grouped<Item, Result> = (item: Item) => Promise<Result>

type Waiting<Item, Result> = {
  item: Item
  resolve: (result: Result) => void
  reject: (reason: unknown) => void
}

/** A group that takes longer than this, as one does that waits for a lock, is no reason for the next one to wait. */
const PATIENCE_MS = 10

/**
 * An item that finds no group under way goes at once, alone; those that come meanwhile wait for its end and go together,
 * `most` at a time. So the busier it is the larger the groups are: a commit of a hundred costs little more than one of
 * ten. Beside a group that takes long others may go, `lanes` in all. `runAll` gives the results in the order of its
 * items, in one statement: all of it is committed, or nothing.
 * Where it fails each item is run again by itself with `runOne`, so that one caller's error is nobody else's; a
 * database that is away is everybody's.
 */
export function createGrouped<Item, Result>(options: {
  runAll: (items: Item[]) => Promise<Result[]>
  runOne: (item: Item) => Promise<Result>
  lanes: number
  most: number
}): Grouped<Item, Result> {
  const { runAll, runOne, lanes, most } = options
  const queue: Waiting<Item, Result>[] = []
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
      if (isDatabaseAway(error)) group.forEach(({ reject }) => reject(error))
      else await Promise.all(group.map(({ item, resolve, reject }) => runOne(item).then(resolve, reject)))
    }
  }

  function go(): void {
    if (patience !== null) clearTimeout(patience)
    patience = null
    if (underWay >= lanes || queue.length === 0) return
    underWay++
    void run(queue.splice(0, most)).finally(() => {
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
      queue.push({ item, resolve, reject })
      next()
    })
}

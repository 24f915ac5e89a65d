import type { Timers } from '../../../../../src/timers.ts'
import { seededRandom } from '../../../../helpers/seeded-random.ts'

/** A clock of its own: time passes from timer to timer. */
export type VirtualTime = Timers & {
  /** Returns after `ms` of its time. */
  sleep(ms: number): Promise<void>
  /** Fires every timer up to `untilMs`, one after the other, with all that follows at once. */
  run(untilMs: number): Promise<void>
}

type Timer = { atMs: number; order: number; run: (() => void) | null }

export function createVirtualTime(): VirtualTime {
  let nowMs = 0
  let order = 0
  const heap: Timer[] = []
  const isBefore = (a: Timer, b: Timer): boolean =>
    a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)

  function push(timer: Timer): void {
    let index = heap.push(timer) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(timer, heap[parent]!)) break
      heap[index] = heap[parent]!
      index = parent
    }
    heap[index] = timer
  }

  function pop(): Timer {
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, last)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
    return first
  }

  const time: VirtualTime = {
    nowMs: () => nowMs,
    after(ms, run) {
      const timer: Timer = { atMs: nowMs + Math.max(0, ms), order: order++, run }
      push(timer)
      return () => {
        timer.run = null
      }
    },
    sleep: (ms) => new Promise((resolve) => time.after(ms, resolve)),
    async run(untilMs) {
      while (heap.length > 0 && heap[0]!.atMs <= untilMs) {
        const { atMs, run } = pop()
        if (run === null) continue
        nowMs = atMs
        run()
        // Every continuation of a promise runs before the next timer.
        await new Promise(setImmediate)
      }
      nowMs = untilMs
    },
  }
  return time
}

/** A random generator that gives the same numbers for the same seed. */
export function createRandom(seed: number) {
  const next = seededRandom(seed)
  return {
    next,
    between: (min: number, max: number): number => min + (max - min) * next(),
    below: (count: number): number => Math.floor(next() * count),
    chance: (share: number): boolean => next() < share,
    of: <T>(items: readonly T[]): T => items[Math.floor(next() * items.length)]!,
  }
}

export type Random = ReturnType<typeof createRandom>

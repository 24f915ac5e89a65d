/** A number of places; who finds none waits in order. */
export type Semaphore = {
  /** False when there was none before `untilMs` on `performance.now()`; null waits for as long as it takes. */
  acquire(untilMs: number | null): Promise<boolean>
  release(): void
}

export function createSemaphore(places: number): Semaphore {
  const waiting = new Set<() => void>()
  let free = places
  return {
    acquire(untilMs) {
      if (free > 0) {
        free--
        return Promise.resolve(true)
      }
      return new Promise((resolve) => {
        const timer =
          untilMs === null
            ? undefined
            : setTimeout(
                () => {
                  waiting.delete(enter)
                  resolve(false)
                },
                Math.max(0, untilMs - performance.now()),
              )
        const enter = (): void => {
          clearTimeout(timer)
          resolve(true)
        }
        waiting.add(enter)
      })
    },
    release() {
      const [next] = waiting
      if (next === undefined) {
        free++
        return
      }
      waiting.delete(next)
      next()
    },
  }
}

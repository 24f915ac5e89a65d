/** Bounds the number of messages in flight in this process. */
export type SendLimiter = {
  /** Waits for a slot and returns the function that frees it; null when none is free in time. */
  enter(): Promise<(() => void) | null>
}

/**
 * Creates `slots` slots, for which up to `queue` callers wait `waitMs` at most. A message that gets none has not been
 * claimed and is tried again later, so that a slow server blocks neither rows nor the slots of deliveries.
 */
export function createSendLimiter(options: { slots: number; queue: number; waitMs: number }): SendLimiter {
  let free = options.slots
  const waiting: (() => void)[] = []

  function freeOnce(): () => void {
    let isFreed = false
    return () => {
      if (isFreed) return
      isFreed = true
      free++
      waiting.shift()?.()
    }
  }

  return {
    enter() {
      if (free > 0) {
        free--
        return Promise.resolve(freeOnce())
      }
      if (waiting.length >= options.queue) return Promise.resolve(null)
      return new Promise((resolve) => {
        const admit = (): void => {
          clearTimeout(timer)
          free--
          resolve(freeOnce())
        }
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(admit), 1)
          resolve(null)
        }, options.waitMs)
        waiting.push(admit)
      })
    },
  }
}

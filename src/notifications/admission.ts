/** Lets a bounded number of messages be under way in this process. */
export type Admission = {
  /** What to call at the end; null when there is no room soon: then nothing is begun. */
  enter(): Promise<(() => void) | null>
}

/**
 * `places` at once; up to `queue` wait for one, `waitMs` at most. What is turned away has not been claimed and comes
 * again: a server that hangs holds neither rows nor the slots of deliveries.
 */
export function createAdmission(options: { places: number; queue: number; waitMs: number }): Admission {
  let free = options.places
  const waiting: (() => void)[] = []

  function leaveOnce(): () => void {
    let left = false
    return () => {
      if (left) return
      left = true
      free++
      waiting.shift()?.()
    }
  }

  return {
    enter() {
      if (free > 0) {
        free--
        return Promise.resolve(leaveOnce())
      }
      if (waiting.length >= options.queue) return Promise.resolve(null)
      return new Promise((resolve) => {
        const admit = (): void => {
          clearTimeout(timer)
          free--
          resolve(leaveOnce())
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

/** Runs `send`, and bounds how many run in this process; does not run it where no slot is free in time. */
export type SendLimiter = (send: () => Promise<void>) => Promise<void>

/**
 * Creates `slots` slots, for which up to `queue` callers wait `waitMs` at most. A message that gets none has not been
 * claimed and is tried again later, so that a slow server blocks neither rows nor the slots of deliveries.
 */
export function createSendLimiter(options: { slots: number; queue: number; waitMs: number }): SendLimiter {
  let free = options.slots
  const waiting: (() => void)[] = []

  function isAdmitted(): Promise<boolean> {
    return new Promise((resolve) => {
      const admit = (): void => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(admit), 1)
        resolve(false)
      }, options.waitMs)
      waiting.push(admit)
    })
  }

  return async (send) => {
    if (free > 0) free--
    else if (waiting.length >= options.queue || !(await isAdmitted())) return
    try {
      await send()
    } finally {
      const admitNext = waiting.shift()
      if (admitNext === undefined) free++
      else admitNext()
    }
  }
}

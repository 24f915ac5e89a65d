/** A page that nobody looks at asks for nothing; after a failure it asks less often. */
const LONGEST_PAUSE_MS = 30_000

/**
 * Calls `load` now and again, each time `everyMs` after the last call ended, while the page is visible.
 * `refresh` does so at once; `stop` ends it for good.
 * @param {() => Promise<void>} load
 * @param {number} everyMs
 */
export function poll(load, everyMs) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  /** @type {Promise<void> | null} */
  let underWay = null
  let failures = 0
  let stopped = false

  const run = async () => {
    clearTimeout(timer)
    if (stopped) return
    try {
      await load()
      failures = 0
    } catch {
      failures++
    }
    const pause = Math.min(everyMs * 2 ** failures, Math.max(LONGEST_PAUSE_MS, everyMs))
    if (!isStopped() && !document.hidden) timer = setTimeout(() => void refresh(), pause)
  }
  // Read anew: it may have been stopped while `load` was under way.
  const isStopped = () => stopped
  /** What is asked for while a look is under way may be newer than what that look finds: one more follows. */
  const refresh = async () => {
    if (underWay !== null) await underWay
    underWay ??= run().finally(() => {
      underWay = null
    })
    await underWay
  }
  const onVisible = () => {
    if (!document.hidden) void refresh()
  }
  document.addEventListener('visibilitychange', onVisible)
  void refresh()
  return {
    refresh,
    stop: () => {
      stopped = true
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisible)
    },
  }
}

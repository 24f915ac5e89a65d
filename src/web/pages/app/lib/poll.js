/** A hidden page requests nothing; after a failure requests are less frequent. */
const MAX_DELAY_MS = 30_000

/** An answer that takes longer leaves what is shown stale. */
const STALE_AFTER_MS = 5_000

/**
 * Calls `load` now and again, each time `everyMs` after the last call ended, while the page is visible.
 * `refresh` does so at once; `stop` ends it for good; `silence` says for how long there has been no answer, and when
 * the last one came: null while what is shown is fresh, or before the first answer.
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
  /** @type {number | null} */
  let answeredAt = null
  /** When the first of the requests that had no answer since was sent. @type {number | null} */
  let silentSince = null

  const run = async () => {
    clearTimeout(timer)
    if (stopped) return
    silentSince ??= Date.now()
    try {
      await load()
      failures = 0
      answeredAt = Date.now()
      silentSince = null
    } catch {
      failures++
    }
    const pause = Math.min(everyMs * 2 ** failures, Math.max(MAX_DELAY_MS, everyMs))
    if (!isStopped() && !document.hidden) timer = setTimeout(() => void refresh(), pause)
  }
  // Read again: it may have been stopped during `load`.
  const isStopped = () => stopped
  /** A request during `load` may concern newer data than `load` returns, so another `load` follows. */
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
    silence: () => {
      if (answeredAt === null || silentSince === null) return null
      const forMs = Date.now() - silentSince
      return failures > 0 || forMs > STALE_AFTER_MS ? { forMs, answeredAt } : null
    },
  }
}

import { inWords } from '../parts/problem.js'
import { ApiProblem } from './api.js'

/** @import { App } from '../types.d.ts' */

/** A hidden page requests nothing; after a failure requests are less frequent. */
const MAX_DELAY_MS = 30_000

/** An answer that takes longer leaves what is shown stale. */
const STALE_AFTER_MS = 5_000

/**
 * How requests for what is shown are answered. `problem`: in words why the last one failed, or empty; `status`: of that
 * problem, or 0; `silence` says for how long there has been no answer, and when the last one came: null while what is
 * shown is fresh, or before the first answer.
 * @typedef {ReturnType<typeof createAnswers>} Answers
 */

export function createAnswers() {
  /** @type {number | null} */
  let answeredAt = null
  /** When the first of the requests that had no answer since was sent. @type {number | null} */
  let silentSince = null
  const answers = {
    problem: '',
    status: 0,
    requested: () => {
      silentSince ??= Date.now()
    },
    answered: () => {
      Object.assign(answers, { problem: '', status: 0 })
      ;[answeredAt, silentSince] = [Date.now(), null]
    },
    /** @param {unknown} error */
    failed: (error) => {
      const status = error instanceof ApiProblem ? error.problem.status : 0
      Object.assign(answers, { problem: inWords(error), status })
    },
    silence: () => {
      if (answeredAt === null || silentSince === null) return null
      const forMs = Date.now() - silentSince
      return answers.problem !== '' || forMs > STALE_AFTER_MS ? { forMs, answeredAt } : null
    },
  }
  return answers
}

/**
 * Calls `load` now and again, each time `pauseMs` after the last call ended, while the page is visible, and shows what
 * came of it. `refresh` does so at once; `stop` ends it for good.
 * @param {Pick<App, 'update'>} app
 * @param {() => Promise<void>} load
 * @param {number | (() => number)} pauseMs
 */
export function poll(app, load, pauseMs) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  /** @type {Promise<void> | null} */
  let underWay = null
  let failures = 0
  let stopped = false
  const answers = createAnswers()

  const run = async () => {
    clearTimeout(timer)
    if (stopped) return
    answers.requested()
    try {
      await load()
      failures = 0
      answers.answered()
    } catch (error) {
      failures++
      answers.failed(error)
    }
    app.update()
    const usual = typeof pauseMs === 'number' ? pauseMs : pauseMs()
    const pause = Math.min(usual * 2 ** failures, Math.max(MAX_DELAY_MS, usual))
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
    answers,
    refresh,
    stop: () => {
      stopped = true
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisible)
    },
  }
}

import { isDatabaseDown } from '../../db/connection/connection-errors.ts'
import type { Logger } from '../../observability/logger.ts'
import { settlesWithin } from '../../timers.ts'

/** Scrapes within this time get the same figures. */
const FIGURES_TTL_MS = 5_000

/** Counting may take the database one part in so many of its time; where it takes longer it is done less often. */
const SHARE = 50

/** How long a scrape waits for figures; what comes later serves the next one. */
const FIGURES_TIMEOUT_MS = 1_000

/** After a count that was cancelled the next one comes within this time; older figures are not shown. */
const USABLE_MS = 240_000

/**
 * Returns figures of the last four minutes. Null where there are none: the database is away, or counting takes longer
 * than a scrape should.
 */
export type ReadBacklog<Backlog> = () => Promise<Backlog | null>

/**
 * Creates a reader of figures of a backlog, counted by `read` at most once at a time and at most every few seconds. `nowMs`
 * is a clock that never goes back.
 */
export function createBacklogReader<Backlog>(dependencies: {
  read: () => Promise<Backlog>
  logger: Logger
  nowMs?: () => number
}): ReadBacklog<Backlog> {
  const { logger, nowMs = () => performance.now() } = dependencies
  let latest: { backlog: Backlog; atMs: number } | null = null
  let notBeforeMs = -Infinity
  let reading: Promise<void> | null = null

  async function refresh(): Promise<void> {
    const startedAtMs = nowMs()
    const restMs = (): number => Math.max(FIGURES_TTL_MS, SHARE * (nowMs() - startedAtMs))
    try {
      const backlog = await dependencies.read()
      latest = { backlog, atMs: nowMs() }
      notBeforeMs = nowMs() + restMs()
    } catch (error) {
      const isDown = isDatabaseDown(error)
      if (isDown) latest = null
      // One that is away does no work meanwhile, and its figures are wanted as soon as it is back.
      notBeforeMs = nowMs() + (isDown ? FIGURES_TTL_MS : restMs())
      logger.warn({ event: 'metrics.backlog_failed', err: error })
    }
    reading = null
  }

  return async () => {
    if (reading === null && nowMs() >= notBeforeMs) reading = refresh()
    if (reading !== null) await settlesWithin(reading, FIGURES_TIMEOUT_MS)
    return latest !== null && nowMs() - latest.atMs < USABLE_MS ? latest.backlog : null
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import { isDatabaseAway } from '../../db/connection-errors.ts'
import type { Logger } from '../../logger.ts'

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000

/** What the database refuses so often is no blip, and is logged; then once in each interval. */
const TRIES_BEFORE_LOG = 3
const LOG_INTERVAL_MS = 60_000

/**
 * Runs `record` again and again until it succeeds, whatever the error: the POST is over, and its outcome would be lost
 * with this call. Each error counts (`onError`). Never rejects.
 */
export async function untilRecorded<T>(
  record: () => Promise<T>,
  { logger, deliveryId, onError }: { logger: Logger; deliveryId: string; onError: () => void },
): Promise<T> {
  let loggedAtMs = -Infinity
  for (let tries = 1, pauseMs = FIRST_PAUSE_MS; ; tries++, pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    try {
      return await record()
    } catch (error) {
      onError()
      if (tries >= TRIES_BEFORE_LOG && performance.now() - loggedAtMs >= LOG_INTERVAL_MS) {
        loggedAtMs = performance.now()
        const fields = { event: 'attempt.not_recorded', deliveryId, tries, err: error }
        if (isDatabaseAway(error)) logger.warn(fields, 'attempt.not_recorded')
        else logger.error(fields, 'attempt.not_recorded')
      }
      await delay(pauseMs)
    }
  }
}

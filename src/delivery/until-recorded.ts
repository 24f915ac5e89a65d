import { setTimeout as delay } from 'node:timers/promises'
import { isDatabaseAway } from '../db/connection-errors.ts'
import type { Logger } from '../logger.ts'

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000

/** An outcome that the database goes on refusing is logged so often. */
const LOG_INTERVAL_MS = 60_000

/**
 * Runs `record` again and again until it succeeds, whatever the error: the POST is over, and its outcome would be lost
 * with this call. Each error counts (`onError`); one that does not just say that the database is away is logged, once a
 * minute. Never rejects.
 */
export async function untilRecorded<T>(
  record: () => Promise<T>,
  { logger, deliveryId, onError }: { logger: Logger; deliveryId: string; onError: () => void },
): Promise<T> {
  let loggedAtMs = -Infinity
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    try {
      return await record()
    } catch (error) {
      onError()
      if (!isDatabaseAway(error) && performance.now() - loggedAtMs >= LOG_INTERVAL_MS) {
        loggedAtMs = performance.now()
        logger.error({ event: 'attempt.not_recorded', deliveryId, err: error }, 'attempt.not_recorded')
      }
      await delay(pauseMs)
    }
  }
}

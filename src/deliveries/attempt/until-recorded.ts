import { setTimeout as delay } from 'node:timers/promises'
import { isDatabaseUnavailable, WebhookLockedError } from '../../db/connection-errors.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'

const INITIAL_DELAY_MS = 100
const MAX_DELAY_MS = 5_000

/** Fewer errors in a row are not logged; more are, once in each interval. */
const TRIES_BEFORE_LOG = 3
const LOG_INTERVAL_MS = 60_000

/**
 * Repeats `record` until it succeeds, whatever the error: giving up would lose the outcome of a POST. Never rejects.
 */
export async function untilRecorded<T>(
  record: () => Promise<T>,
  { logger, metrics }: { logger: Logger; metrics: Pick<Metrics, 'attemptNotRecorded'> },
  deliveryId: string,
): Promise<T> {
  let loggedAtMs = -Infinity
  for (let tries = 1, delayMs = INITIAL_DELAY_MS; ; tries++, delayMs = Math.min(delayMs * 2, MAX_DELAY_MS)) {
    try {
      return await record()
    } catch (error) {
      metrics.attemptNotRecorded()
      if (tries >= TRIES_BEFORE_LOG && performance.now() - loggedAtMs >= LOG_INTERVAL_MS) {
        loggedAtMs = performance.now()
        const fields = { event: 'attempt.record_failed', deliveryId, tries, err: error }
        if (isDatabaseUnavailable(error)) logger.warn(fields, 'attempt.record_failed')
        else logger.error(fields, 'attempt.record_failed')
      }
      // The lock has been tried again and again by now, after pauses of its own.
      await delay(error instanceof WebhookLockedError ? INITIAL_DELAY_MS : delayMs)
    }
  }
}

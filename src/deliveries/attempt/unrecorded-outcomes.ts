import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'
import { isDatabaseUnavailable, WebhookLockedError } from '../../db/connection/connection-errors.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { renewLeases } from '../protocol/claim.ts'
import type { Endpoint } from './endpoint.ts'

/** Outcomes that this process could not record for a while, and keeps without the slots of their attempts. */
export type UnrecordedOutcomes = {
  /**
   * Keeps an outcome until `recording` ends. Returns after how many ms to ask for it; null where so many are kept that
   * its attempt is to wait for it.
   */
  keep(endpoint: Endpoint, deliveryId: string, recording: Promise<unknown>): number | null
  /** Returns after how many ms to ask for an outcome again; null where it is not kept. */
  retryAfterMs(endpoint: Endpoint, deliveryId: string): number | null
  /** Returns when the outcomes that are kept now are recorded. */
  recorded(): Promise<void>
}

/** With so many outcomes unrecorded an endpoint gets no further POST: those of further ones would wait as well. */
const MAX_UNRECORDED = 10

/** Of all endpoints. */
const MAX_UNRECORDED_IN_ALL = 1_000

/** An outcome is asked for after half of the time for which it has been kept, within these bounds. */
export const MIN_UNRECORDED_RETRY_MS = 5_000
const MAX_UNRECORDED_RETRY_MS = 60_000

export function createUnrecordedOutcomes(nowMs: () => number): UnrecordedOutcomes {
  const recordings = new Set<Promise<unknown>>()
  return {
    keep({ unrecorded }, deliveryId, recording) {
      unrecorded.set(deliveryId, nowMs())
      recordings.add(recording)
      const forget = (): void => {
        unrecorded.delete(deliveryId)
        recordings.delete(recording)
      }
      recording.then(forget, forget)
      return recordings.size > MAX_UNRECORDED_IN_ALL ? null : MIN_UNRECORDED_RETRY_MS
    },
    retryAfterMs({ unrecorded }, deliveryId) {
      const sinceMs = unrecorded.get(deliveryId)
      if (sinceMs === undefined) return null
      return Math.min(MAX_UNRECORDED_RETRY_MS, Math.max(MIN_UNRECORDED_RETRY_MS, (nowMs() - sinceMs) / 2))
    },
    async recorded() {
      await Promise.allSettled(recordings)
    },
  }
}

/** Returns whether an endpoint gets no POST until one of its outcomes is recorded. */
export function isBlocked({ unrecorded }: Endpoint): boolean {
  return unrecorded.size >= MAX_UNRECORDED
}

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
        if (isDatabaseUnavailable(error)) logger.warn(fields)
        else logger.error(fields)
      }
      // The lock has been tried again and again by now, after pauses of its own.
      await delay(error instanceof WebhookLockedError ? INITIAL_DELAY_MS : delayMs)
    }
  }
}

type OwnedRow = { deliveryId: string; owner: string }

/** Renews the lease of a row until the returned function is called. */
export type RenewLease = (row: OwnedRow) => () => void

/** An outcome that is recorded sooner needs no renewal; the lease exceeds the POST by more than twice as much. */
const RENEW_INTERVAL_MS = 1_000

/**
 * Renews the leases of rows whose outcome is being recorded, so that no other run posts meanwhile. All rows share one
 * statement a second.
 */
export function createLeaseRenewal(options: { dataSource: DataSource; leaseMs: number }): RenewLease {
  const { dataSource, leaseMs } = options
  const sinceMs = new Map<OwnedRow, number>()
  let isScheduled = false

  async function renew(): Promise<void> {
    const before = performance.now() - RENEW_INTERVAL_MS
    const due = [...sinceMs].filter(([, since]) => since <= before).map(([row]) => row)
    // Recording the outcome meets the same error, and logs it.
    if (due.length > 0) await renewLeases(dataSource, due, leaseMs).catch(() => undefined)
    isScheduled = false
    schedule()
  }

  function schedule(): void {
    if (isScheduled || sinceMs.size === 0) return
    isScheduled = true
    setTimeout(() => void renew(), RENEW_INTERVAL_MS).unref()
  }

  return (row) => {
    sinceMs.set(row, performance.now())
    schedule()
    return () => sinceMs.delete(row)
  }
}

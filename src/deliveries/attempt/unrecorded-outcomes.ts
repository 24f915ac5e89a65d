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

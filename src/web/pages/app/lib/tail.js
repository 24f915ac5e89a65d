/** @import { Delivery } from '../types.d.ts' */

/** The newest deliveries that fit are shown, and no others are kept. */
export const TAIL_SIZE = 50

/** What comes during a pause is counted up to here. */
const MAX_COUNTED = 1_000

/**
 * The newest deliveries as they were last read, or as they were when the tail was paused. `missedAt`: when more had come
 * between two readings than one of them gives.
 */
export function createTail() {
  /** @type {Delivery[] | null} */
  let latest = null
  /** @type {{ at: number, rows: Delivery[], after: string, arrived: Set<string>, isMore: boolean } | null} */
  let pause = null
  /** @type {number | null} */
  let missedAt = null
  /** Ids are given in the order of time. */
  let newestId = ''

  return {
    get rows() {
      return pause?.rows ?? latest
    },
    get missedAt() {
      return missedAt
    },
    /** Null where it is not paused. `isMore`: more came than were counted. */
    get pause() {
      return pause === null ? null : { at: pause.at, arrived: pause.arrived.size, isMore: pause.isMore }
    },
    /** @param {Delivery[]} read newest first */
    take(read) {
      const isOverrun = newestId !== '' && read.length === TAIL_SIZE && (read.at(-1)?.id ?? '') > newestId
      if (isOverrun) missedAt = Date.now()
      latest = read
      const [newest = { id: '' }] = read
      if (newest.id > newestId) newestId = newest.id
      if (pause === null) return
      const { after, arrived } = pause
      for (const { id } of read) if (id > after && arrived.size < MAX_COUNTED) arrived.add(id)
      if (isOverrun || arrived.size === MAX_COUNTED) pause.isMore = true
    },
    /** Begins anew, with another filter. */
    clear() {
      ;[latest, pause, missedAt, newestId] = [null, null, null, '']
    },
    togglePause() {
      pause =
        pause === null
          ? { at: Date.now(), rows: latest ?? [], after: newestId, arrived: new Set(), isMore: false }
          : null
    },
  }
}

import { addressed, addressWith, given } from './links.js'
import { createAnswers } from './poll.js'

/** @import { App } from '../types.d.ts' */

/** Parameter of the address. The cursors of the pages before are in the entry of the history. */
const CURSOR = 'cursor'

const PAGE_SIZE = 20

/** A page that took several requests is not requested again with every refresh. */
const LONG_SEARCH_EVERY_MS = 15_000

/**
 * A page under way. `rows`: found so far; `cursor`: where it goes on, null at the end.
 * @template T
 * @typedef {{ rows: T[], cursor: string | null, requests: number, isActive: boolean }} Search
 */

/**
 * A list with a filter, in pages, both in the address. A page that comes short although more may follow is filled by
 * further requests, unless the user stops the search.
 * @template T
 * @template {string} N
 * @param {Pick<App, 'update'>} app
 * @param {readonly N[]} names parameters of the filter
 * @param {(query: Record<string, string>) => Promise<{ data: T[], nextCursor: string | null, searchedUntil?: string | null }>} load
 * @param {number} [pageSize]
 */
export function createListing(app, names, load, pageSize = PAGE_SIZE) {
  let filter = /** @type {Record<N, string>} */ (
    Object.fromEntries(names.map((name) => [name, addressed(name)]))
  )
  /** The cursors of the pages up to the one that is shown. */
  let trail = trailOf(addressed(CURSOR))
  /** @type {T[] | null} */
  let rows = null
  /** Of the page whose rows these are. */
  let number = trail.length + 1
  /** The cursor of the page that follows; undefined while another page is on its way. @type {string | null | undefined} */
  let next = null
  /** @type {string | null} */
  let searchedUntil = null
  /** @type {Search<T> | null} */
  let search = null
  let [isStopped, requests, filledAt] = [false, 0, 0]
  const answers = createAnswers()

  /** @param {Search<T>} mine */
  const step = async (mine) => {
    answers.requested()
    const page = await load({
      ...given(filter),
      limit: String(pageSize - mine.rows.length),
      ...(mine.cursor === null ? {} : { cursor: mine.cursor }),
    })
    // The filter or the page has changed since, or the search was stopped.
    if (search !== mine) return true
    mine.requests++
    mine.rows.push(...page.data)
    mine.cursor = page.nextCursor
    searchedUntil = page.searchedUntil ?? null
    answers.answered()
    const isFull = mine.rows.length >= pageSize || mine.cursor === null
    // What is shown is not replaced by less.
    if (isFull || rows === null || mine.rows.length > rows.length)
      [rows, number] = [[...mine.rows], trail.length + 1]
    if (isFull) [next, requests, filledAt, search] = [mine.cursor, mine.requests, Date.now(), null]
    app.update()
    return isFull
  }
  /** Goes on where the last request failed. Throws what went wrong, once it is shown. */
  const run = async () => {
    search ??= { rows: [], cursor: trail.at(-1) ?? null, requests: 0, isActive: false }
    const mine = search
    if (mine.isActive) return
    mine.isActive = true
    try {
      while (!(await step(mine)));
    } catch (error) {
      if (search !== mine) return
      answers.failed(error)
      throw error
    } finally {
      mine.isActive = false
      app.update()
    }
  }
  /** Reads the page from its beginning, also where a search was stopped, or ended a moment ago. */
  const reread = async () => {
    ;[search, isStopped] = [null, false]
    app.update()
    await run().catch(() => undefined)
  }
  /**
   * @param {Record<N, string>} wanted
   * @param {string[]} wantedTrail
   */
  const go = (wanted, wantedTrail) => {
    ;[filter, trail, next] = [wanted, wantedTrail, rows === null ? null : undefined]
    history.pushState(trail, '', addressWith({ ...filter, [CURSOR]: trail.at(-1) ?? '' }))
    void reread()
  }

  return {
    answers,
    get filter() {
      return filter
    },
    /** The filter as it is asked for: without what is empty. */
    get query() {
      return given(filter)
    },
    get rows() {
      return rows
    },
    get page() {
      return { number, hasNewer: trail.length > 0, hasOlder: next !== null }
    },
    /** How far back a long search has looked; null where there is none. */
    get search() {
      const isLong = isStopped || (search !== null && search.requests > 0 && searchedUntil !== null)
      return isLong ? { until: searchedUntil, isStopped } : null
    },
    reread,
    /** For a poll: leaves alone a search that was stopped, and for a while one that was long. */
    refresh: async () => {
      if (isStopped) return
      if (search === null && requests > 1 && Date.now() - filledAt < LONG_SEARCH_EVERY_MS) return
      await run()
    },
    /** @param {Partial<Record<N, string>>} changes */
    change: (changes) => {
      rows = null
      go({ ...filter, ...changes }, [])
    },
    newer: () => go(filter, trail.slice(0, -1)),
    /** Nothing while another page is on its way: who presses twice goes one page on. */
    older: () => {
      if (typeof next === 'string') go(filter, [...trail, next])
    },
    stopSearch: () => {
      if (search === null) return
      ;[rows, number, next, isStopped, search] = [search.rows, trail.length + 1, search.cursor, true, null]
      app.update()
    },
    resumeSearch: () => {
      ;[search, isStopped] = [
        { rows: [...(rows ?? [])], cursor: next ?? null, requests: 1, isActive: false },
        false,
      ]
      run().catch(() => undefined)
    },
  }
}

/**
 * @param {string} cursor
 * @returns {string[]}
 */
function trailOf(cursor) {
  if (cursor === '') return []
  /** @type {unknown} */
  const kept = history.state
  return Array.isArray(kept) && kept.at(-1) === cursor ? kept.map(String) : [cursor]
}

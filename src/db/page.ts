/** A page of a list; `last` is the `after` of the next page, null when this one ends the list. */
export type Page<Row> = { page: Row[]; last: string | null }

/**
 * Makes a page of up to `limit` rows from `limit + 1` rows that were read: the surplus row means that another page
 * follows.
 */
export function pageOf<Row extends { id: string }>(found: readonly Row[], limit: number): Page<Row> {
  const page = found.slice(0, limit)
  return { page, last: found.length > limit ? (page.at(-1)?.id ?? null) : null }
}

/** A page of a list; `last` is the `after` of the next page, null when this one ends the list. */
export type Page<Row> = { page: Row[]; last: string | null }

/** Of rows found with a limit of one more than the page holds: that one tells whether another page follows. */
export function pageOf<Row extends { id: string }>(found: readonly Row[], limit: number): Page<Row> {
  const page = found.slice(0, limit)
  return { page, last: found.length > limit ? (page.at(-1)?.id ?? null) : null }
}

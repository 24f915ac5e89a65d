/**
 * A list's filter and page in the address, so that a reload, a link and going back show them again. The cursors of the
 * pages before are in the entry of the history.
 */
const CURSOR = 'cursor'

/**
 * @template {string} N
 * @param {readonly N[]} names parameters of the filter; those that the address lacks are empty
 * @param {URLSearchParams} parameters
 * @returns {{ filter: Record<N, string>, trail: string[] }} `trail`: the cursors of the pages up to the one that is shown
 */
export function readListAddress(names, parameters) {
  const filter = /** @type {Record<N, string>} */ (
    Object.fromEntries(names.map((name) => [name, parameters.get(name) ?? '']))
  )
  const cursor = parameters.get(CURSOR)
  if (cursor === null) return { filter, trail: [] }
  /** @type {unknown} */
  const kept = history.state
  const trail = Array.isArray(kept) && kept.at(-1) === cursor ? kept.map(String) : [cursor]
  return { filter, trail }
}

/**
 * Adds an entry to the history.
 * @param {Record<string, string>} filter
 * @param {string[]} trail
 */
export function pushListAddress(filter, trail) {
  const url = new URL(location.href)
  for (const [name, value] of Object.entries({ ...filter, [CURSOR]: trail.at(-1) ?? '' }))
    if (value === '') url.searchParams.delete(name)
    else url.searchParams.set(name, value)
  history.pushState(trail, '', url)
}

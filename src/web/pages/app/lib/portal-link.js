/** `#portal=…`: the fragment that a portal link has, and that browsers send to no server. */
const TOKEN = /^#portal=(.+)$/

/**
 * Returns the token of the portal link that the page was opened with, and removes it from the address and the history;
 * null without one.
 * @returns {string | null}
 */
export function takePortalToken() {
  const token = TOKEN.exec(location.hash)?.[1] ?? null
  if (token !== null) history.replaceState(null, '', `${location.pathname}${location.search}`)
  return token
}

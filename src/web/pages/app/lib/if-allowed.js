/**
 * Uses what a browser refuses to a page for which it keeps no data: storage, and channels between tabs.
 * @template T
 * @param {() => T} use
 * @returns {T | null} null where the browser refuses it
 */
export function ifAllowed(use) {
  try {
    return use()
  } catch {
    return null
  }
}

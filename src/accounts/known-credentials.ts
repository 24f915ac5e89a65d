/** Hashes of keys, session tokens and stream tickets that were valid in this process lately. */
export type KnownCredentials = {
  add(hash: Buffer): void
  has(hash: Buffer): boolean
  delete(hash: Buffer): void
}

/** Some 2 MB. */
const MAX_KNOWN = 10_000

/**
 * Remembers the credentials that are checked even while their sender's address is beyond the limit of failed
 * authentications. The check decides whether they are still valid. Evicts the least recently used first.
 */
export function createKnownCredentials(maxKnown = MAX_KNOWN): KnownCredentials {
  const known = new Set<string>()
  const nameOf = (hash: Buffer): string => hash.toString('base64')
  return {
    add(hash) {
      const name = nameOf(hash)
      // Moves to the end: a Set keeps its members in the order of insertion.
      known.delete(name)
      known.add(name)
      if (known.size <= maxKnown) return
      for (const oldest of known) {
        known.delete(oldest)
        return
      }
    },
    has: (hash) => known.has(nameOf(hash)),
    delete: (hash) => void known.delete(nameOf(hash)),
  }
}

/** Hashes of keys, session tokens and stream tickets that were valid in this process lately. */
export type KnownCredentials = {
  add(hash: Buffer): void
  has(hash: Buffer): boolean
  delete(hash: Buffer): void
}

/** Some 2 MB. What was used least lately makes room; it is looked up again unless its sender is beyond the limit. */
const MAX_KNOWN = 10_000

/**
 * Remembers which credentials are worth a look-up when their sender's address is beyond the limit of failed
 * authentications. It says nothing about whether they are still valid.
 */
export function createKnownCredentials(maxKnown = MAX_KNOWN): KnownCredentials {
  const known = new Set<string>()
  const nameOf = (hash: Buffer): string => hash.toString('base64')
  return {
    add(hash) {
      const name = nameOf(hash)
      // Moves to the end: a Set keeps the order in which its members came.
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

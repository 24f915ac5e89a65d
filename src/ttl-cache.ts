/** A value that was found; it counts no longer than `expiresInMs`, where that is given. */
type Found<Value> = { value: Value; expiresInMs?: number | null }

/** Returns what is known of `key`, or what `find` finds; null when it finds nothing. */
export type TtlCache<Value> = (key: string, find: () => Promise<Found<Value> | null>) => Promise<Value | null>

/** `expiresAtMs` on `performance.now()`. */
type Entry<Value> = { value: Promise<Value | null>; expiresAtMs: number }

/**
 * Looks up each key once per `ttlMs`, whatever the number of requests; concurrent requests share one query. Keeps only
 * what is found, so that something new counts at once. Above `maxEntries` expired entries are removed, once per `ttlMs`.
 */
export function createTtlCache<Value>(options: { ttlMs: number; maxEntries: number }): TtlCache<Value> {
  const { ttlMs, maxEntries } = options
  const entries = new Map<string, Entry<Value>>()
  let cleanedAtMs = -Infinity

  function dropExpired(nowMs: number): void {
    if (entries.size <= maxEntries || nowMs - cleanedAtMs < ttlMs) return
    cleanedAtMs = nowMs
    for (const [key, { expiresAtMs }] of entries) if (expiresAtMs < nowMs) entries.delete(key)
  }

  return (key, find) => {
    const nowMs = performance.now()
    const known = entries.get(key)
    if (known !== undefined && nowMs < known.expiresAtMs) return known.value
    dropExpired(nowMs)
    const entry: Entry<Value> = { value: Promise.resolve(null), expiresAtMs: nowMs + ttlMs }
    entries.set(key, entry)
    entry.value = settle()
    return entry.value

    async function settle(): Promise<Value | null> {
      let found: Found<Value> | null = null
      try {
        found = await find()
      } finally {
        if (found === null) entries.delete(key)
      }
      if (found === null) return null
      entry.expiresAtMs = nowMs + Math.min(ttlMs, found.expiresInMs ?? Infinity)
      return found.value
    }
  }
}

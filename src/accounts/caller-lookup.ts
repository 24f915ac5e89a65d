import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { DataSource } from 'typeorm'
import { hashCredential } from '../credentials.ts'
import { findCaller } from '../db/queries/api-keys.ts'
import type { KeyCaller, Caller } from '../domain/actor.ts'
import { isActiveOrganisation } from '../db/queries/erasures.ts'
import { notFound, ProblemError } from '../problem-error.ts'

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
  const known = new LRUCache<string, true>({ max: maxKnown })
  const nameOf = (hash: Buffer): string => hash.toString('base64')
  return {
    add: (hash) => void known.set(nameOf(hash), true),
    has: (hash) => known.has(nameOf(hash)),
    delete: (hash) => void known.delete(nameOf(hash)),
  }
}

/** Returns the caller behind an API key, or null when the key is unknown, revoked or expired. */
export type CallerLookup = (key: string) => Promise<KeyCaller | null>

/**
 * Cache TTL: a revoked key, or a permission taken from a member, ends within this time in every process.
 * What revokes a key waits for it.
 */
export const CALLER_TTL_MS = 1_000

/** Resolves when no process believes any more what it read of a key before the call. */
export async function callerCachesExpired(): Promise<void> {
  await delay(CALLER_TTL_MS)
}

/** Keys, or organisations, that are in use within a second; some 5 MB. */
const MAX_ENTRIES = 10_000

/** Caches valid keys for `ttlMs`, by their hash only, and adds them to `known`. */
export function createCallerLookup(
  dataSource: DataSource,
  ttlMs = CALLER_TTL_MS,
  known: KnownCredentials = createKnownCredentials(),
): CallerLookup {
  const cache = createTtlCache<KeyCaller>(ttlMs)
  return (key) =>
    cache(hashCredential(key).toString('base64'), async () => {
      const found = await findCaller(dataSource, key)
      if (found === null) return null
      known.add(found.caller.keyHash)
      return { value: found.caller, expiresInMs: found.expiresInMs }
    })
}

/** Throws 404 unless there is an organisation of this id that is not being erased. */
export type OrganisationCheck = (organisationId: string) => Promise<void>

export function createOrganisationCheck(dataSource: DataSource, ttlMs = CALLER_TTL_MS): OrganisationCheck {
  const cache = createTtlCache<true>(ttlMs)
  return async (organisationId) => {
    const find = async () =>
      (await isActiveOrganisation(dataSource, organisationId)) ? { value: true as const } : null
    if ((await cache(organisationId, find)) === null) throw notFound('organisation')
  }
}

/** Returns the caller where it has an API key. Throws 403 where it is signed in by a portal link. */
export function requireKey<SomeCaller extends Caller>(caller: SomeCaller): SomeCaller & KeyCaller {
  const { apiKeyId, keyHash } = caller
  if (apiKeyId !== null && keyHash !== null) return { ...caller, apiKeyId, keyHash }
  throw new ProblemError('needs_api_key', { detail: 'A session of a portal link cannot do this.' })
}

/** A value that was found; it counts no longer than `expiresInMs`, where that is given. */
type Found<Value> = { value: Value; expiresInMs?: number | null }

/** Returns what is known of `key`, or what `find` finds; null when it finds nothing. */
type TtlCache<Value> = (key: string, find: () => Promise<Found<Value> | null>) => Promise<Value | null>

/**
 * Looks up each key once per `ttlMs` (above 0) from the begin of the query, whatever the number of requests; concurrent
 * requests share one query. Keeps only what is found, so that something new counts at once. Evicts the least recently
 * used first.
 */
function createTtlCache<Value>(ttlMs: number): TtlCache<Value> {
  const entries = new LRUCache<string, Promise<Value | null>>({ max: MAX_ENTRIES, ttlResolution: 0 })
  return (key, find) => {
    const known = entries.get(key)
    if (known !== undefined) return known
    const start = performance.now()
    const value = settle()
    entries.set(key, value, { start, ttl: ttlMs })
    return value

    async function settle(): Promise<Value | null> {
      let found: Found<Value> | null = null
      try {
        found = await find()
      } finally {
        if (found === null) entries.delete(key)
      }
      if (found === null) return null
      entries.set(key, value, { start, ttl: Math.min(ttlMs, found.expiresInMs ?? ttlMs) })
      return found.value
    }
  }
}

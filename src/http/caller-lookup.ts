import type { DataSource } from 'typeorm'
import { findCaller, hashApiKey, type Caller } from '../db/queries/api-keys.ts'
import { createKnownCredentials, type KnownCredentials } from './known-credentials.ts'

/** The caller behind an API key, or null when it is unknown, revoked or expired. */
export type CallerLookup = (key: string) => Promise<Caller | null>

/**
 * So long an answer is believed: what was revoked, or taken from a member, ends within that time in every process.
 * `posthorn api-key revoke` waits for it.
 */
export const CALLER_MAX_AGE_MS = 1_000

/** Answers too old to be believed are dropped when there are more than this. */
const SWEEP_ABOVE = 1_000

/** A key's own end may come sooner than that of the answer. Both on `performance.now()`. */
type Answer = { caller: Promise<Caller | null>; untilMs: number }

/**
 * Looks up each key once per `maxAgeMs`, however many requests come with it; those that come together share one query.
 * Only what is valid is kept: a key works from the instant it was made. Valid keys are added to `known`.
 */
export function createCallerLookup(
  dataSource: DataSource,
  maxAgeMs = CALLER_MAX_AGE_MS,
  known: KnownCredentials = createKnownCredentials(),
): CallerLookup {
  const answers = new Map<string, Answer>()

  async function ask(key: string, answer: Answer, digest: string): Promise<Caller | null> {
    const askedAtMs = performance.now()
    try {
      const found = await findCaller(dataSource, key)
      if (found === null) answers.delete(digest)
      else {
        answer.untilMs = askedAtMs + Math.min(maxAgeMs, found.expiresInMs ?? Infinity)
        known.add(found.caller.keyHash)
      }
      return found?.caller ?? null
    } catch (error) {
      answers.delete(digest)
      throw error
    }
  }

  return (key) => {
    const digest = hashApiKey(key).toString('base64')
    const now = performance.now()
    const known = answers.get(digest)
    if (known !== undefined && now < known.untilMs) return known.caller
    if (answers.size > SWEEP_ABOVE)
      for (const [of, { untilMs }] of answers) if (untilMs < now) answers.delete(of)
    const answer: Answer = { caller: Promise.resolve(null), untilMs: now + maxAgeMs }
    answers.set(digest, answer)
    answer.caller = ask(key, answer, digest)
    return answer.caller
  }
}

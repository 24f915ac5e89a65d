import type { ReplayCount, ReplayRow } from '../../db/queries/replays.ts'

/** Presents what a replay would send. */
export function presentReplayCount({ since, until, total, isTotalExact }: ReplayCount) {
  return { since: since.toISOString(), until: until.toISOString(), total, isTotalExact }
}

export function presentReplay(job: ReplayRow) {
  const { id, webhookId, state, since, until, total, isTotalExact, eventKeys, include } = job
  const { done, succeeded, failed, createdAt } = job
  const range = { since, until, total, isTotalExact, eventKeys, include }
  return { id, webhookId, state, ...range, done, succeeded, failed, createdAt }
}

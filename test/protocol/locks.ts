import { BrokenRule } from './explore.ts'
import { sentText } from './statement-text.ts'

const TAKES_LOCK = /pg_(try_)?advisory_xact_lock\(/
const CHANGES_INCIDENT = /^\s*(INSERT INTO|UPDATE) incident\b/

/** Statements of the protocol whose callers hold the lock of the webhook. */
const UNDER_LOCK = new Set(
  ['record-success', 'record-failure', 'request-retry', 'stop', 'resume', 'discard'].map((file) =>
    sentText(file),
  ),
)

/**
 * Throws where a transaction changes an incident, or runs a statement that needs the lock of the webhook, before it has
 * the lock. `sent`: its statements in order, as PostgreSQL got them; `given`: as the product gave them.
 */
export function requireLock(sent: readonly string[], given: readonly string[]): void {
  const isLocked = (place: number): boolean => sent.slice(0, place).some((text) => TAKES_LOCK.test(text))
  for (const [place, text] of given.entries())
    if ((UNDER_LOCK.has(text) || CHANGES_INCIDENT.test(text)) && !isLocked(place))
      throw new BrokenRule('what may change an incident is done under the lock of its webhook')
}

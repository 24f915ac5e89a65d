import { TEST_EVENT_KEY, WILDCARD } from './permissions.ts'

/**
 * Returns whether a webhook with this subscription receives events with `eventKey`. A test event is sent to one webhook
 * regardless of its subscription, so it is always covered. The SQL function `stop_reason_of` states the same rule for the
 * database.
 */
export function coversEventKey(subscribedEventKeys: readonly string[], eventKey: string): boolean {
  if (eventKey === TEST_EVENT_KEY || subscribedEventKeys.includes(WILDCARD)) return true
  return subscribedEventKeys.includes(eventKey)
}

/** Returns whether every event that `narrower` receives is one that `wider` receives as well. */
export function isCoveredBy(wider: readonly string[], narrower: readonly string[]): boolean {
  return wider.includes(WILDCARD) || narrower.every((key) => wider.includes(key))
}

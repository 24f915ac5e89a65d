import type { DataSource } from 'typeorm'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { transactLonger } from '../db/connection/database-client.ts'
import { findUnknownSubscribedKeys, type SubscribedKey } from '../db/queries/webhooks.ts'
import type { Logger } from '../observability/logger.ts'

/** Bounds the log line. */
const MAX_LOGGED_KEYS = 50

/** Returns the event keys that webhooks subscribe to and that the catalogue lacks. */
export function findMissingKeys(dataSource: DataSource, { eventKeys }: Catalogue): Promise<SubscribedKey[]> {
  const known = eventKeys.map(({ key }) => key)
  return transactLonger(dataSource, (manager) => findUnknownSubscribedKeys(manager, known))
}

export function describeMissingKeys(missing: readonly SubscribedKey[]): string[] {
  return missing.map(
    ({ eventKey, webhooks }) => `${eventKey} is missing: ${webhooks} webhook(s) subscribe to it`,
  )
}

/** Warns of subscriptions to event keys that can no longer be published. They are left as they are. */
export async function warnOfMissingKeys(
  dataSource: DataSource,
  catalogue: Catalogue,
  logger: Logger,
): Promise<void> {
  const missing = await findMissingKeys(dataSource, catalogue)
  if (missing.length === 0) return
  const fields = {
    event: 'catalogue.keys_missing',
    count: missing.length,
    keys: missing.slice(0, MAX_LOGGED_KEYS),
  }
  logger.warn(fields, 'webhooks subscribe to event keys that the catalogue lacks')
}

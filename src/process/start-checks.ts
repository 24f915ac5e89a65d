import type { DataSource } from 'typeorm'
import { sampleSealedSecrets, findUnknownSubscribedKeys, type SubscribedKey } from '../db/queries/webhooks.ts'
import type { SecretBox } from '../secret-box.ts'
import { describeError } from './visible-text.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { transactLonger } from '../db/connection/database-client.ts'
import type { Logger } from '../observability/logger.ts'

/** One secret can be damaged or copied from another webhook, so several are tried per key. */
const SAMPLES_PER_KEY = 5

/**
 * Tries the ring on the signing secrets under each encryption key that the database uses, and throws where none of a
 * key's opens. With a key missing or wrong, deliveries could not be signed: better not to start than to find that out
 * one delivery at a time.
 */
export async function assertKeyRing(dataSource: DataSource, secretBox: SecretBox): Promise<void> {
  const problems = await keyRingProblems(dataSource, secretBox)
  if (problems.size === 0) return
  throw new Error(
    [
      'POSTHORN_ENCRYPTION_KEYS does not open the signing secrets of this database:',
      ...[...problems].map(([keyId, problem]) => `  - of those under key "${keyId}": ${problem}`),
    ].join('\n'),
  )
}

/** By the id of each key that opens none of the secrets it is named in: why the first of them does not open. */
export async function keyRingProblems(
  dataSource: DataSource,
  secretBox: SecretBox,
): Promise<Map<string, string>> {
  const problems = new Map<string, string>()
  const opened = new Set<string>()
  for (const { keyId, webhookId, secret } of await sampleSealedSecrets(dataSource, SAMPLES_PER_KEY)) {
    try {
      secretBox.open(webhookId, secret)
      opened.add(keyId)
    } catch (error) {
      if (!problems.has(keyId)) problems.set(keyId, describeError(error))
    }
  }
  for (const keyId of opened) problems.delete(keyId)
  return problems
}

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

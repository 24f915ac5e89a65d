import type { DataSource } from 'typeorm'
import { sampleSealedSecrets } from '../db/queries/sealed-secrets.ts'
import type { SecretBox } from '../secret-box.ts'
import { describeError } from './visible-text.ts'

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

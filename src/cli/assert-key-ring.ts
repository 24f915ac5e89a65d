import type { DataSource } from 'typeorm'
import { sampleSealedSecrets } from '../db/queries/webhooks.ts'
import type { SecretBox } from '../secret-box.ts'

/**
 * Opens one signing secret for each encryption key that the database uses. With a key missing or wrong, deliveries
 * could not be signed: better not to start than to find that out one delivery at a time.
 */
export async function assertKeyRing(dataSource: DataSource, secretBox: SecretBox): Promise<void> {
  const sealed = await sampleSealedSecrets(dataSource)
  const unopened = sealed.filter(({ webhookId, secret }) => !opens(secretBox, webhookId, secret))
  if (unopened.length === 0) return
  const ids = unopened.map(({ keyId }) => keyId).join(', ')
  throw new Error(
    `POSTHORN_ENCRYPTION_KEYS does not open the signing secrets of this database: key ${ids} is missing or not the one they were encrypted with.`,
  )
}

function opens(secretBox: SecretBox, webhookId: string, secret: string): boolean {
  try {
    secretBox.open(webhookId, secret)
    return true
  } catch {
    return false
  }
}

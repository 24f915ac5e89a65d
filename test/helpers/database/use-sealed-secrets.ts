import { findSealedSecret } from '../../../src/db/queries/webhooks.ts'
import { createSecretBox } from '../../../src/secret-box.ts'
import { type TestDatabase, useDatabase } from './database.ts'
import { createMember, createWebhookRow } from './factories.ts'

/** `OLD` is the key of the tests, with which rows are sealed; `NEW` is to take its place. */
export const OLD = { id: 'test1', key: Buffer.from('ab'.repeat(32), 'hex') }
export const NEW = { id: 'k2', key: Buffer.from('cd'.repeat(32), 'hex') }
export const rotated = createSecretBox([NEW, OLD])
export const onlyNew = createSecretBox([NEW])

/** One organisation, and the signing secrets of its webhooks as they are stored. */
export type SealedSecrets = {
  database: TestDatabase
  organisationId: string
  webhook: () => ReturnType<typeof createWebhookRow>
  sealedOf: (webhookId: string) => Promise<string>
  put: (webhookId: string, secret: string) => Promise<unknown>
}

/** What the tests of one `describe` share; there is no webhook before each of them. */
export function useSealedSecrets(): SealedSecrets {
  const database = useDatabase()
  const secrets: SealedSecrets = {
    database,
    organisationId: '',
    webhook: () =>
      createWebhookRow(database.dataSource, {
        organisationId: secrets.organisationId,
        url: 'https://receiver.example.com/',
      }),
    sealedOf: async (webhookId) =>
      (await findSealedSecret(database.dataSource, secrets.organisationId, webhookId)) ?? '',
    put: (webhookId, secret) =>
      database.dataSource.query('UPDATE webhook SET secret = $2 WHERE id = $1', [webhookId, secret]),
  }
  beforeEach(async () => {
    await database.dataSource.query('TRUNCATE organisation, webhook CASCADE')
    secrets.organisationId = (await createMember(database.dataSource)).organisationId
  })
  return secrets
}

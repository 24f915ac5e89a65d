import type { DataSource } from 'typeorm'
import { createWebhookRow } from '../database/factories.ts'
import { writeBacklog } from '../deliveries/backlog.ts'

/** A name of 200 characters in which no line can break. */
export const UNBROKEN_NAME = 'Buchungsbestaetigungsweiterleitung'.repeat(6).slice(0, 200)

const NAMES = [
  'Data warehouse of the Antwerp office, nightly reconciliation',
  'ERP',
  'Booking confirmations for the tour operators in the Benelux',
  'Accounting export (Exact Online)',
  '',
  'Marketing automation, customers only',
]

/**
 * Writes what a large customer has: 60 webhooks with names of every length, one of them 200 characters without a space,
 * and 300 deliveries of the first of them, which has an open incident. Returns its id.
 */
export async function writeCrowd(dataSource: DataSource, organisationId: string): Promise<string> {
  const ids: string[] = []
  for (let index = 0; index < 60; index++) {
    const { id } = await createWebhookRow(dataSource, {
      organisationId,
      url: `https://hooks-${String(index % 7)}.integrations.example.com/v2/tenants/camping-zon/${String(index)}?token=x`,
      subscribedEventKeys: ['invoice:paid', 'customer:created'],
      enabled: index % 9 !== 8,
    })
    ids.push(id)
    const name = index === 1 ? UNBROKEN_NAME : NAMES[index % NAMES.length]
    await dataSource.query('UPDATE webhook SET description = $2 WHERE id = $1', [id, name])
  }
  const webhookId = ids[0]!
  const backlog = { organisationId, webhookId }
  await writeBacklog(dataSource, { ...backlog, state: 'failed', count: 140 })
  await writeBacklog(dataSource, { ...backlog, state: 'waiting', count: 160, eventKey: 'invoice:paid' })
  await dataSource.query(
    `INSERT INTO incident (id, organisation_id, webhook_id, opened_at, exhausted_at)
     VALUES (uuidv7(), $1, $2, now() - interval '3 hours', now())`,
    [organisationId, webhookId],
  )
  return webhookId
}

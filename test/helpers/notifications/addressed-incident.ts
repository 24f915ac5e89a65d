import { randomBytes } from 'node:crypto'
import type { DataSource } from 'typeorm'
import { openIncident } from '../../../src/db/queries/incidents.ts'
import { upsertMember, upsertOrganisation } from '../../../src/db/queries/organisations.ts'
import { upsertPushSubscription } from '../../../src/db/queries/push-subscriptions.ts'
import { ORGANIZATION_SETTINGS_UPDATE } from '../../../src/domain/permissions.ts'
import { evaluateNotifications } from '../../../src/incidents/evaluate-notifications.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { newId } from '../../../src/ids.ts'
import { writeBacklog } from '../deliveries/backlog.ts'
import { createWebhookRow } from '../database/factories.ts'

/** A member that may change the organisation's settings, unless `mayChange` is false. */
type Member = { email: string; name?: string; mayChange?: boolean; pushEnabled?: boolean; browsers?: number }

export type People = { email: string; supportEmail?: string | null; members?: readonly Member[] }

type NotificationRow = {
  id: string
  kind: number
  channel: string
  recipient: string
  state: string
  error: string | null
  claim: string | null
  sentAt: Date | null
}

export type AddressedIncident = {
  organisationId: string
  webhookId: string
  incidentId: string
  /** Writes the organisation and its members again; members that are left out stay as they are. */
  people(next: People): Promise<void>
  /** Addresses notification 2, as the workflow's evaluation does. */
  address(): Promise<void>
  /** The states of the rows, by channel and recipient. */
  rows(): Promise<NotificationRow[]>
  row(recipient: string): Promise<NotificationRow>
  /** Ids of the push subscriptions of a member, oldest first. */
  browsersOf(email: string): Promise<string[]>
}

/** An incident of a webhook of its own whose first delivery is permanently failed: notification 2 is due. */
export async function createExhaustedIncident(
  dataSource: DataSource,
  first: People,
): Promise<AddressedIncident> {
  const organisationId = `org_${randomBytes(6).toString('hex')}`
  const people = async ({ email, supportEmail = null, members = [] }: People): Promise<void> => {
    const organisation = { id: organisationId, name: 'Camping Test', timeZone: 'Europe/Brussels' }
    await upsertOrganisation(dataSource, { ...organisation, email, supportEmail })
    for (const member of members) await writeMember(dataSource, organisationId, member)
  }
  await people(first)
  const url = 'https://receiver.example.com/hook'
  const { id: webhookId } = await createWebhookRow(dataSource, { organisationId, url })
  const incidentId = newId()
  await openIncident(dataSource, { id: incidentId, organisationId, webhookId })
  await dataSource.query('UPDATE incident SET exhausted_at = now() WHERE id = $1', [incidentId])
  await writeFailedDelivery(dataSource, organisationId, webhookId)

  const rows = (): Promise<NotificationRow[]> =>
    dataSource.query<NotificationRow[]>(
      `SELECT id, kind, channel, recipient, state, error, claim, sent_at AS "sentAt" FROM notification
        WHERE incident_id = $1 ORDER BY kind, channel, recipient`,
      [incidentId],
    )
  return {
    organisationId,
    webhookId,
    incidentId,
    people,
    rows,
    async address() {
      const request = { organisationId, incidentId, dueFor: null, notifyAfterMs: 300_000 }
      await evaluateNotifications({ dataSource, locks: createWebhookLocks() }, request)
    },
    row: async (recipient) => (await rows()).find((one) => one.recipient === recipient)!,
    async browsersOf(email) {
      const found = await dataSource.query<{ id: string }[]>(
        `SELECT p.id FROM push_subscription p JOIN member m ON m.organisation_id = p.organisation_id AND m.id = p.member_id
          WHERE m.organisation_id = $1 AND m.email = $2 ORDER BY p.id`,
        [organisationId, email],
      )
      return found.map(({ id }) => id)
    },
  }
}

async function writeMember(dataSource: DataSource, organisationId: string, member: Member): Promise<void> {
  const { email, name = 'An', mayChange = true, pushEnabled = false, browsers = 0 } = member
  const memberId = `mem_${Buffer.from(email).toString('hex')}`
  const permissions = mayChange ? [ORGANIZATION_SETTINGS_UPDATE] : ['webhook:manage']
  await upsertMember(dataSource, organisationId, {
    id: memberId,
    name,
    email,
    fullAccess: false,
    pushEnabled,
    permissions,
  })
  for (let index = 0; index < browsers; index++) {
    const endpoint = `https://push.example.com/${memberId}/${index}`
    const subscription = { id: newId(), organisationId, memberId, endpoint, p256dh: 'p', auth: 'a' }
    await upsertPushSubscription(dataSource, subscription, 10)
  }
}

/** One that failed ten times, so that the incident is not closed by an evaluation. */
async function writeFailedDelivery(
  dataSource: DataSource,
  organisationId: string,
  webhookId: string,
): Promise<void> {
  const [deliveryId] = await writeBacklog(dataSource, {
    organisationId,
    webhookId,
    state: 'failed',
    count: 1,
  })
  await dataSource.query(
    `INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, outcome,
                          failure_code, status_code, error)
     VALUES ($1, $2, 10, 'schedule', 'https://receiver.example.com/hook', now(), 5, 'failed',
             'http_status', 503, 'The endpoint answered 503.')`,
    [deliveryId, webhookId],
  )
}

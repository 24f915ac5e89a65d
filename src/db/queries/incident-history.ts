import { In, Raw } from 'typeorm'
import { pageOf, type Db, type Page } from '../connection/db.ts'
import { Incident } from '../entities/incident.ts'
import { Notification } from '../entities/notification.ts'
import { findFailuresOfIncidents, NO_FAILURES, type FailuresRow } from './failures.ts'

/** A notification as the API shows it. `recipient`: an e-mail address, or the id of a push subscription. */
type NotificationRow = Pick<Notification, 'kind' | 'channel' | 'recipient' | 'state' | 'sentAt'>

/** An incident as the API shows it. */
export type IncidentRow = Pick<Incident, 'id' | 'openedAt' | 'closedAt' | 'exhaustedAt'> & {
  failures: FailuresRow
  notifications: NotificationRow[]
}

/**
 * Returns a page of a webhook's incidents, newest first, each with its failures and its notifications in the order of
 * kind, channel and recipient; recipients by their bytes, so that the order is the same under every collation.
 * `after`: the incident before the page, or null.
 */
export async function listIncidents(
  db: Db,
  organisationId: string,
  webhookId: string,
  { after, limit }: { after: string | null; limit: number },
): Promise<Page<IncidentRow>> {
  const found = await db.getRepository(Incident).find({
    select: { id: true, openedAt: true, closedAt: true, exhaustedAt: true },
    where: {
      organisationId,
      webhookId,
      ...(after !== null && {
        id: Raw(
          (id) =>
            `(opened_at, ${id}) < (SELECT opened_at, id FROM incident WHERE id = :after AND webhook_id = :webhookId)`,
          { after, webhookId },
        ),
      }),
    },
    order: { openedAt: 'DESC', id: 'DESC' },
    take: limit + 1,
  })
  const { page: incidents, last } = pageOf(found, limit)
  const failures = await findFailuresOfIncidents(
    db,
    organisationId,
    incidents.map(({ id }) => id),
  )
  const notifications = await db.getRepository(Notification).find({
    select: {
      id: true,
      incidentId: true,
      kind: true,
      channel: true,
      recipient: true,
      state: true,
      sentAt: true,
    },
    where: { incidentId: In(incidents.map(({ id }) => id)) },
  })
  const page = incidents.map(({ id, openedAt, closedAt, exhaustedAt }) => ({
    id,
    openedAt,
    closedAt,
    exhaustedAt,
    failures: failures.get(id) ?? NO_FAILURES,
    notifications: notifications
      .filter(({ incidentId }) => incidentId === id)
      .sort(byKindChannelAndRecipient)
      .map(({ kind, channel, recipient, state, sentAt }) => ({ kind, channel, recipient, state, sentAt })),
  }))
  return { page, last }
}

function byKindChannelAndRecipient(one: Notification, other: Notification): number {
  return (
    one.kind - other.kind ||
    Buffer.compare(Buffer.from(one.channel), Buffer.from(other.channel)) ||
    Buffer.compare(Buffer.from(one.recipient), Buffer.from(other.recipient))
  )
}

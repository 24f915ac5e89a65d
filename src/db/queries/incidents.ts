import { In, Raw } from 'typeorm'
import { pageOf, type Db, type Page } from '../connection/db.ts'
import { Incident, Notification } from '../entities/incident.ts'
import { findFailuresOfIncidents, NO_FAILURES, type FailuresRow } from './failures.ts'

/** An incident with what the API shows beside it. */
export type ListedIncident = Pick<Incident, 'id' | 'openedAt' | 'closedAt' | 'exhaustedAt'> & {
  failures: FailuresRow
  notifications: Pick<Notification, keyof Notification>[]
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
): Promise<Page<ListedIncident>> {
  const found = await db.getRepository(Incident).find({
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
  const ids = incidents.map(({ id }) => id)
  const failures = await findFailuresOfIncidents(db, organisationId, ids)
  const notifications = await db.getRepository(Notification).findBy({ incidentId: In(ids) })
  const page = incidents.map(({ id, openedAt, closedAt, exhaustedAt }) => ({
    id,
    openedAt,
    closedAt,
    exhaustedAt,
    failures: failures.get(id) ?? NO_FAILURES,
    notifications: notifications
      .filter(({ incidentId }) => incidentId === id)
      .sort(byKindChannelAndRecipient),
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

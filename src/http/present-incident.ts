import type { Static } from 'typebox'
import type { IncidentRow, NotificationRow } from '../db/queries/incident-history.ts'
import type { IncidentSchema } from './schemas/incident.ts'

type Incident = Static<typeof IncidentSchema>

/** An incident as the API shows it. Typed by its schema: a kind, channel or state that is not documented fails here. */
export function presentIncident(incident: IncidentRow): Incident {
  const { id, openedAt, closedAt, exhaustedAt, notifications } = incident
  return {
    id,
    openedAt: openedAt.toISOString(),
    closedAt: closedAt?.toISOString() ?? null,
    exhaustedAt: exhaustedAt?.toISOString() ?? null,
    notifications: notifications.map(presentNotification),
  }
}

function presentNotification(notification: NotificationRow): Incident['notifications'][number] {
  const { kind, channel, recipient, state, sentAt } = notification
  return { kind, channel, recipient, state, sentAt: sentAt?.toISOString() ?? null }
}

import type { Static } from 'typebox'
import type { IncidentRow, NotificationRow } from '../db/queries/incident-history.ts'
import { missingPermissions, ORGANIZATION_SETTINGS_UPDATE, type Grants } from '../domain/permissions.ts'
import type { IncidentSchema } from './schemas/incident.ts'

type Incident = Static<typeof IncidentSchema>

/**
 * An incident as the API shows it to `reader`. Typed by its schema: a kind, channel or state that is not documented
 * fails here. Who was told is for those who may change the organisation's settings.
 */
export function presentIncident(incident: IncidentRow, reader: Grants): Incident {
  const showsRecipients = missingPermissions(reader, [ORGANIZATION_SETTINGS_UPDATE]).length === 0
  const { id, openedAt, closedAt, exhaustedAt, notifications } = incident
  return {
    id,
    openedAt: openedAt.toISOString(),
    closedAt: closedAt?.toISOString() ?? null,
    exhaustedAt: exhaustedAt?.toISOString() ?? null,
    notifications: notifications.map((notification) => presentNotification(notification, showsRecipients)),
  }
}

function presentNotification(
  notification: NotificationRow,
  showsRecipient: boolean,
): Incident['notifications'][number] {
  const { kind, channel, recipient, state, sentAt } = notification
  return {
    kind,
    channel,
    recipient: showsRecipient ? recipient : null,
    state,
    sentAt: sentAt?.toISOString() ?? null,
  }
}

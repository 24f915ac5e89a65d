import type { Static } from 'typebox'
import type { ListedIncident, NotificationRow } from '../../db/queries/incidents.ts'
import { missingPermissions, ORGANIZATION_SETTINGS_UPDATE, type Grants } from '../../domain/permissions.ts'
import type { IncidentSchema } from '../schemas/incident.ts'
import type { FailuresRow } from '../../db/queries/failures.ts'
import { FAILURE_TEXTS } from '../../domain/failure-texts.ts'
import type { FailuresSchema } from '../schemas/failures.ts'

type Incident = Static<typeof IncidentSchema>

/**
 * Presents an incident to `reader`, with recipients only for a member that may change the organisation's settings.
 * Typed by its schema, so that an undocumented kind, channel or state does not compile.
 */
export function presentIncident(incident: ListedIncident, reader: Grants): Incident {
  const showsRecipients = missingPermissions(reader, [ORGANIZATION_SETTINGS_UPDATE]).length === 0
  const { id, openedAt, closedAt, exhaustedAt, failures, notifications } = incident
  return {
    id,
    openedAt: openedAt.toISOString(),
    closedAt: closedAt?.toISOString() ?? null,
    exhaustedAt: exhaustedAt?.toISOString() ?? null,
    failures: presentFailures(failures),
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

/** Adds to each cause what to do about it. */
export function presentFailures(failures: FailuresRow): Static<typeof FailuresSchema> {
  const { failedAttempts, deliveries, isCapped, causes } = failures
  return { failedAttempts, deliveries, isCapped, causes: causes.map(presentCause) }
}

function presentCause(cause: FailuresRow['causes'][number]) {
  const { failureCode, statusCode, error, failedAttempts, deliveries, firstAt, lastAt } = cause
  return {
    failureCode,
    statusCode,
    error,
    cure: FAILURE_TEXTS[failureCode].cure,
    failedAttempts,
    deliveries,
    firstAt: firstAt.toISOString(),
    lastAt: lastAt.toISOString(),
  }
}

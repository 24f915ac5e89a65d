import type { FailuresRow } from '../../db/queries/failures.ts'
import type { IncidentRow } from '../../db/queries/incident-history.ts'
import { FAILURE_TEXTS } from '../../domain/failure-texts.ts'
import { missingPermissions, ORGANIZATION_SETTINGS_UPDATE, type Grants } from '../../domain/permissions.ts'
import { FailuresSchema } from '../schemas/failures.ts'
import { IncidentSchema } from '../schemas/incident.ts'
import { presenter } from './presenter.ts'

const presentShown = presenter(IncidentSchema)

/** Presents an incident to `reader`, with recipients only for a member that may change the organisation's settings. */
export function presentIncident(incident: IncidentRow, reader: Grants) {
  const showsRecipients = missingPermissions(reader, [ORGANIZATION_SETTINGS_UPDATE]).length === 0
  const notifications = incident.notifications.map((notification) => ({
    ...notification,
    recipient: showsRecipients ? notification.recipient : null,
  }))
  return presentShown({ ...incident, failures: presentFailures(incident.failures), notifications })
}

const presentShownFailures = presenter(FailuresSchema)

/** Adds to each cause what to do about it. */
export function presentFailures(failures: FailuresRow) {
  const causes = failures.causes.map((cause) => ({ ...cause, cure: FAILURE_TEXTS[cause.failureCode].cure }))
  return presentShownFailures({ ...failures, causes })
}

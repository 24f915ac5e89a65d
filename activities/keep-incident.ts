import { untilDatabaseAnswers } from '../src/db/patience.ts'
import type { IncidentLook, NotificationCounts } from '../src/domain/incident-rules.ts'
import { lookAtIncident, type LookRequest } from '../src/incidents/look.ts'
import { sendDue, type SendDependencies } from '../src/notifications/send-due.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/** What the workflow is told; `look` is null when the incident is no more. */
export type KeptIncident = { look: IncidentLook | null; notifications: NotificationCounts }

export type KeepIncidentRequest = LookRequest & { retry: boolean }

/** Running twice is harmless: a notification is addressed once, and claimed before it is sent. */
export function createKeepIncident(dependencies: SendDependencies) {
  return (request: KeepIncidentRequest): Promise<KeptIncident> =>
    withHeartbeat(async ({ cancelled }) => {
      const look = await untilDatabaseAnswers(
        () => lookAtIncident(dependencies.dataSource, request),
        cancelled,
      )
      if (look === null) return { look, notifications: [] }
      return { look, notifications: await sendDue(dependencies, request, cancelled) }
    })
}

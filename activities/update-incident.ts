import { retryWhileUnavailable } from '../src/db/connection/retry-while-unavailable.ts'
import type { IncidentEvaluation, NotificationCounts } from '../src/domain/incident-rules.ts'
import { evaluateIncident, type EvaluationRequest } from '../src/incidents/evaluate-incident.ts'
import type { CommandDependencies } from '../src/webhooks/webhook-locks.ts'
import { sendDue, type SendDependencies } from '../src/incidents/notifications/send-due.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/** `evaluation` is null when the incident was deleted. */
export type UpdatedIncident = { evaluation: IncidentEvaluation | null; notifications: NotificationCounts }

export type UpdateIncidentRequest = EvaluationRequest & { retry: boolean }

/** Running twice is harmless: a notification is addressed once, and claimed before it is sent. */
export function createUpdateIncident(dependencies: SendDependencies & CommandDependencies) {
  return (request: UpdateIncidentRequest): Promise<UpdatedIncident> =>
    withHeartbeat(async ({ cancelled }) => {
      const evaluation = await retryWhileUnavailable(() => evaluateIncident(dependencies, request), cancelled)
      if (evaluation === null) return { evaluation, notifications: [] }
      return { evaluation, notifications: await sendDue(dependencies, request, cancelled) }
    })
}

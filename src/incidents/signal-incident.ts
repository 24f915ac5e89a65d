import type { IncidentLabel } from '../domain/workflow-inputs.ts'
import type { Logger } from '../observability/logger.ts'
import type { IncidentWorkflows } from '../temporal/job-workflows.ts'
import { settlesWithin } from '../timers.ts'

/** What changed, and the incident whose workflow is to be signalled; null where nothing concerns it. */
export type Changed<T> = { result: T; toSignal: IncidentLabel | null }

/** The caller does not wait for a slow Temporal. */
const SIGNAL_TIMEOUT_MS = 1_000

export type SignalDependencies = { incidentWorkflows: IncidentWorkflows; logger: Logger }

/**
 * Signals the incident's workflow that the row changed. Never throws: the row is due for the sweeper, which repeats a
 * signal that was lost a few seconds later.
 */
export async function signalIncident(
  { incidentWorkflows, logger }: SignalDependencies,
  incident: IncidentLabel | null,
): Promise<void> {
  if (incident === null) return
  const { incidentId } = incident
  const signalled = incidentWorkflows
    .signal(incident)
    .catch((error: unknown) =>
      logger.warn({ event: 'incident.signal_failed', incidentId, err: error }),
    )
  await settlesWithin(signalled, SIGNAL_TIMEOUT_MS)
}

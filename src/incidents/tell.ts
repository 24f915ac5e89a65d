import { setTimeout as delay } from 'node:timers/promises'
import type { IncidentLabel } from '../domain/workflow-labels.ts'
import type { Logger } from '../logger.ts'
import type { IncidentWorkflows } from '../temporal/incident-workflows.ts'

/** Whoever tells has other things to do: an engine that is slow is not waited for. */
const LONGEST_WAIT_MS = 1_000

export type TellDependencies = { incidentWorkflows: IncidentWorkflows; logger: Logger }

/**
 * Has the incident's workflow look at its row. Failing is no loss, and never throws: the row says that it is owed a
 * look, and the sweep repeats it a few seconds later.
 */
export async function tellOfIncident(
  { incidentWorkflows, logger }: TellDependencies,
  incident: IncidentLabel | null,
): Promise<void> {
  if (incident === null) return
  const { incidentId } = incident
  const told = incidentWorkflows
    .tell(incident)
    .catch((error: unknown) =>
      logger.warn({ event: 'incident.not_told', incidentId, err: error }, 'incident.not_told'),
    )
  await Promise.race([told, delay(LONGEST_WAIT_MS, undefined, { ref: false })])
}

import type { IncidentLabel } from '../db/queries/incidents.ts'
import type { Logger } from '../logger.ts'
import type { IncidentWorkflows } from '../temporal/incident-workflows.ts'

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
  try {
    await incidentWorkflows.tell(incident)
  } catch (error) {
    const { incidentId } = incident
    logger.warn({ event: 'incident.not_told', incidentId, err: error }, 'incident.not_told')
  }
}

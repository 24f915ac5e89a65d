import type { EntityManager } from 'typeorm'
import { closeResolvedIncident } from '../db/queries/incidents.ts'
import type { IncidentLabel } from '../domain/workflow-labels.ts'

/** What changed, and the incident whose workflow is to be signalled; null where nothing concerns it. */
export type Changed<T> = { result: T; toSignal: IncidentLabel | null }

/**
 * Discards deliveries of the webhook by `discard`, and closes its incident if none is left unresolved. Where `discard`
 * returns null or 0 it discarded nothing, and the incident stays as it is. The caller holds the lock of the webhook.
 */
export async function closeIfResolved<T>(
  manager: EntityManager,
  webhookId: string,
  discard: () => Promise<T>,
): Promise<Changed<T>> {
  const result = await discard()
  const hasDiscarded = result !== null && result !== 0
  return { result, toSignal: hasDiscarded ? await closeResolvedIncident(manager, webhookId) : null }
}

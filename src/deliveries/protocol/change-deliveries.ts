import { EntityManager } from 'typeorm'
import type { Db } from '../../db/connection/db.ts'
import { allowLongerStatements } from '../../db/connection/database-client.ts'
import { closeResolvedIncident } from '../../db/queries/incidents.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import type { IncidentLabel } from '../../domain/workflow-inputs.ts'
import { loadSql, type ProtocolStatement } from './load-sql.ts'

const REQUEST_RETRY = loadSql('request-retry')
const STOP = loadSql('stop')
const RESUME = loadSql('resume')
const DISCARD = loadSql('discard')
const REPLAY = loadSql('replay')
const ERASE = loadSql('erase')

/** A delivery whose next attempt a user requested. Before its first attempt, and during one, no workflow has to be woken. */
export type RequestedRetry = {
  deliveryId: string
  attempts: number
  eventKey: string
  url: string
  state: Extract<DeliveryState, 'pending' | 'in_progress' | 'waiting'>
}

/** Which deliveries of a webhook. The caller holds the lock of the webhook, here and below. */
type OfWebhook = { organisationId: string; webhookId: string }

/** Requests the next attempts of deliveries that are in one of `states`. Returns those for which it is requested. */
export function requestRetries(
  db: Db,
  of: OfWebhook & { ids: readonly string[]; states: readonly DeliveryState[] },
): Promise<RequestedRetry[]> {
  const { organisationId, webhookId, ids, states } = of
  return REQUEST_RETRY.with({ organisationId, webhookId, ids, states }).rows(db)
}

/**
 * Stops the deliveries that the webhook, as it is in this transaction, does not take, or those of one event. Returns how
 * many, and the incident that it closes: an erased payload may leave nothing unresolved.
 */
export async function stopUnwanted(
  db: Db,
  of: OfWebhook,
  eventId: string | null = null,
): Promise<{ stopped: number; closed: IncidentLabel | null }> {
  const { count, areErased } = await changeAll<{ count: number; areErased: boolean }>(db, STOP, of, {
    eventId,
  })
  return { stopped: count, closed: areErased ? await closeResolvedIncident(db, of) : null }
}

/**
 * Resumes the deliveries that were stopped before any attempt and that the webhook, as it is in this transaction, takes.
 * Returns how many.
 */
export async function resumeUnattempted(db: Db, of: OfWebhook): Promise<number> {
  return (await changeAll<{ count: number }>(db, RESUME, of)).count
}

/** There may be hundreds of thousands of them. */
async function changeAll<Changed extends object>(
  db: Db,
  statement: ProtocolStatement,
  { organisationId, webhookId }: OfWebhook,
  more: Record<string, unknown> = {},
): Promise<Changed> {
  if (db instanceof EntityManager) await allowLongerStatements(db)
  return statement.with({ organisationId, webhookId, ...more }).one<Changed>(db)
}

/** Stops waiting and failed deliveries for good. Returns the ids of those that were. */
export function discard(db: Db, of: OfWebhook & { ids: readonly string[] }): Promise<string[]> {
  const { organisationId, webhookId, ids } = of
  return DISCARD.with({ organisationId, webhookId, ids }).ids(db)
}

/** Makes further deliveries of events, for a webhook that takes them. Returns those that it made. */
export function replay(
  db: Db,
  of: OfWebhook & { eventIds: readonly string[] },
): Promise<{ deliveryId: string }[]> {
  const { organisationId, webhookId, eventIds } = of
  return REPLAY.with({ organisationId, webhookId, eventIds }).rows(db)
}

/** Marks the deliveries of an event whose payload is erased in this transaction. */
export async function markErased(db: Db, of: { organisationId: string; eventId: string }): Promise<void> {
  const { organisationId, eventId } = of
  await ERASE.with({ organisationId, eventId }).rows(db)
}

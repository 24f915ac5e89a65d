import type { DataSource, EntityManager } from 'typeorm'
import {
  closeIncidentIfResolved,
  findIncidentLabel,
  hasOpenIncident,
  lockOpenIncident,
  noteFailure,
  openIncident,
  queueForIncident,
  type LockedIncident,
} from '../db/queries/incidents.ts'
import { lockStopReason, lockWebhook, type WebhookRow } from '../db/queries/webhooks.ts'
import type { StopReason } from '../domain/delivery-state.ts'
import type { IncidentLabel } from '../domain/workflow-labels.ts'
import { newId } from '../ids.ts'

/** Which webhook's incident. */
type IncidentOf = { organisationId: string; webhookId: string }

/** An attempt of which webhook, with which event key. */
type AttemptOf = IncidentOf & { eventKey: string }

/** What was done, and the incident whose workflow is to be told of it; null when it need not know. */
export type Changed<T> = { result: T; tell: IncidentLabel | null }

type Recorded = { state: 'waiting' | 'failed' | 'stopped' }

/** The failure is one that the workflow has to be told of: that takes the exclusive lock. Nothing was written. */
class LockTooWeak extends Error {}

/** The attempt was recorded by somebody else: an incident opened for it is taken back. */
class NothingRecorded extends Error {}

/** Writes the failure; `stopReason` says why the delivery is stopped, null while its webhook takes deliveries. */
type Record<T> = (manager: EntityManager, stopReason: StopReason | null) => Promise<T | null>

/**
 * Records a failed attempt by `record`, and in the same transaction opens an incident or has the open one know. A
 * failure for a webhook that takes no such deliveries any more stops the delivery and leaves the incident as it is.
 * Lock order: the line for the incident, webhook, incident, delivery. Failures share the incident's lock, so that the
 * many failures of one endpoint do not stand in line; only the few that change the row take it alone. `result` is null
 * when there was nothing to record any more.
 */
export async function recordInIncident<T extends Recorded>(
  dataSource: DataSource,
  of: AttemptOf,
  record: Record<T>,
): Promise<Changed<T | null>> {
  const inTransaction = (lock: 'shared' | 'exclusive'): Promise<Changed<T>> =>
    dataSource.transaction((manager) => recordUnder(lock, manager, of, record))
  try {
    return await inTransaction('shared').catch((error: unknown) => {
      if (error instanceof LockTooWeak) return inTransaction('exclusive')
      throw error
    })
  } catch (error) {
    if (error instanceof NothingRecorded) return { result: null, tell: null }
    throw error
  }
}

async function recordUnder<T extends Recorded>(
  lock: 'shared' | 'exclusive',
  manager: EntityManager,
  of: AttemptOf,
  record: Record<T>,
): Promise<Changed<T>> {
  await queueForIncident(manager, of.webhookId, lock)
  const stopReason = await lockStopReason(manager, of.organisationId, of.webhookId, of.eventKey)
  const joined = stopReason === null ? await openOrJoin(manager, of, lock) : null
  const result = await record(manager, stopReason)
  if (result === null) throw new NothingRecorded()
  if (joined === null) return { result, tell: null }

  const { incident, opened } = joined
  const exhausts = result.state === 'failed' && !incident.exhausted
  if (!opened && !exhausts && !incident.resting) return { result, tell: null }
  if (!opened && lock === 'shared') throw new LockTooWeak()
  await noteFailure(manager, incident.id, exhausts)
  return { result, tell: await findIncidentLabel(manager, incident.id) }
}

/** The webhook's open incident under `lock`, or a new one. */
async function openOrJoin(
  manager: EntityManager,
  of: IncidentOf,
  lock: 'shared' | 'exclusive',
): Promise<{ incident: LockedIncident; opened: boolean }> {
  for (;;) {
    const joined = await lockOpenIncident(manager, of.webhookId, lock)
    if (joined !== null) return { incident: joined, opened: false }
    const incident = await openIncident(manager, { id: newId(), ...of })
    if (incident !== null) return { incident, opened: true }
  }
}

/** Locks a webhook for whoever may lock its incident too: the line for that comes first. */
export async function lockWebhookInLine(
  manager: EntityManager,
  organisationId: string,
  webhookId: string,
): Promise<WebhookRow | null> {
  await queueForIncident(manager, webhookId, 'exclusive')
  return lockWebhook(manager, organisationId, webhookId)
}

/**
 * Runs `work`, which resolves deliveries of the webhook by a success or a user's discard, under the lock of its
 * incident, and closes that if none is left unresolved. Where `work` answers with null, false or 0 it resolved nothing,
 * and the incident stays as it is. To be called before a delivery is locked, and after `queueForIncident`, or
 * `lockWebhookInLine` where the webhook is locked too.
 */
export async function resolveWithin<T>(
  manager: EntityManager,
  webhookId: string,
  work: () => Promise<T>,
): Promise<Changed<T>> {
  const incident = await lockOpenIncident(manager, webhookId, 'exclusive')
  const result = await work()
  if (incident === null || !isResolved(result)) return { result, tell: null }
  return { result, tell: await closeIncidentIfResolved(manager, incident.id) }
}

function isResolved(result: unknown): boolean {
  return result !== null && result !== false && result !== 0
}

/** The same in a transaction of its own. */
export function resolve<T>(
  dataSource: DataSource,
  webhookId: string,
  work: (manager: EntityManager) => Promise<T>,
): Promise<Changed<T>> {
  return dataSource.transaction(async (manager) => {
    await queueForIncident(manager, webhookId, 'exclusive')
    return resolveWithin(manager, webhookId, () => work(manager))
  })
}

/** Closes the webhook's incident if nothing is left unresolved; after a success that was recorded without its lock. */
export async function closeIfResolved(
  dataSource: DataSource,
  webhookId: string,
): Promise<IncidentLabel | null> {
  if (!(await hasOpenIncident(dataSource, webhookId))) return null
  const { tell } = await resolve(dataSource, webhookId, () => Promise.resolve(true))
  return tell
}

import { setTimeout as delay } from 'node:timers/promises'
import pLimit from 'p-limit'
import { recordAudit, type AuditActor } from '../../db/queries/audit.ts'
import { eraseAnswers, eraseBody, findEvent, listOpenOfEvent } from '../../db/queries/events.ts'
import { notFound } from '../../problem-error.ts'
import { signalIncident, type SignalDependencies } from '../../incidents/evaluate-notifications.ts'
import { transactOnWebhook } from '../../webhooks/webhook-locks.ts'
import { MAX_CLAIM_AGE_MS, type StopDependencies } from '../attempt/claim-attempt.ts'
import { markErased, stopUnwanted } from '../protocol/change-deliveries.ts'

type Dependencies = StopDependencies & SignalDependencies

const MAX_CONCURRENT_WEBHOOKS = 4

/** An event may have deliveries of many webhooks, and a request is answered within ten seconds. */
const LOCK_TIMEOUT_MS = 1_000

/**
 * Erases the payload of an event and what endpoints answered to it, in one transaction with its audit entry. Then stops
 * its open deliveries, webhook by webhook; a claim of one that is left over is refused, and stops it. Returns when no
 * POST of it begins any more, in any process; one that has begun finishes, and its outcome is recorded without the answer.
 * A repeat erases nothing and stops what is left over. Throws 404 where the organisation has no such event.
 */
export async function erasePayload(
  dependencies: Dependencies,
  actor: AuditActor,
  eventId: string,
): Promise<void> {
  const { dataSource } = dependencies
  const { organisationId } = actor
  const of = { organisationId, eventId }
  const by = actor.actor ?? actor.memberId ?? 'unknown'
  await dataSource.transaction(async (manager) => {
    const eventKey = await eraseBody(manager, { ...of, by })
    if (eventKey === null) return
    await markErased(manager, of)
    // A statement of its own: it reads the answers of the records that `markErased` has waited for.
    await eraseAnswers(manager, of)
    await recordAudit(manager, actor, { action: 'event.payload_erased', details: { eventId, eventKey } })
  })
  if ((await findEvent(dataSource, organisationId, eventId)) === null) throw notFound('event')
  const open = await listOpenOfEvent(dataSource, of)
  await pLimit(MAX_CONCURRENT_WEBHOOKS).map(open, ({ webhookId }) =>
    stopErased(dependencies, { organisationId, webhookId }, eventId),
  )
  // A run that had claimed a delivery before may be about to begin its POST.
  if (open.some(({ isUnderWay }) => isUnderWay)) await delay(MAX_CLAIM_AGE_MS)
}

async function stopErased(
  dependencies: Dependencies,
  of: { organisationId: string; webhookId: string },
  eventId: string,
): Promise<void> {
  const { stopped, closed } = await transactOnWebhook(
    dependencies,
    of.webhookId,
    (manager) => stopUnwanted(manager, of, eventId),
    LOCK_TIMEOUT_MS,
  )
  void signalIncident(dependencies, closed)
  dependencies.metrics.deliveriesStopped(stopped)
}

import { setTimeout as delay } from 'node:timers/promises'
import { secretOf } from '../../helpers/api/operator.ts'
import { changeWebhook, createWebhook, narrowForAWhile, switchForAWhile } from './act-on-webhook.ts'
import { callPosthorn } from './call-posthorn.ts'
import { nowMs } from './clock.ts'
import { ORGANISATIONS, type PlannedAction, VICTIM } from './plan.ts'
import type { Publication, UserAction } from './record.ts'
import { onTemporal } from './on-temporal.ts'
import type { PlayWorld, WorldWebhook } from './world.ts'

type Found = { id: string; webhookId: string; organisationId: string; attempts: number }

/** After that many attempts a delivery has failed permanently (spec 8.1). */
const MAX_ATTEMPTS = 10
/** How long a member waits for the outcome of one retry before asking for the next. */
const OUTCOME_LIMIT_MS = 3_000
const REPEAT_AFTER_MS = 300
/** A replay is of the events of that time. */
const REPLAYED_MS = 10_000

/** Carries out one planned action and notes it in the journal. Never throws for what Posthorn answers. */
export async function act(world: PlayWorld, action: PlannedAction): Promise<void> {
  switch (action.kind) {
    case 'publish':
      await Promise.all(Array.from({ length: action.count }, () => publish(world, action)))
      return
    case 'switch':
      return switchForAWhile(world, pickWebhook(world, action), action.offMs)
    case 'narrow':
      return narrowForAWhile(world, pickWebhook(world, action), action.offMs)
    case 'move': {
      const webhook = pickWebhook(world, action)
      await changeWebhook(world, webhook, () => ({ urlVersion: webhook.urlVersion + 1 }))
      return
    }
    case 'delete':
      await changeWebhook(world, pickWebhook(world, action), () => ({ isDeleted: true }))
      return
    case 'create':
      return createWebhook(world, pickWebhook(world, action))
    case 'retry': {
      const found = await findDelivery(
        world,
        `state IN ('waiting', 'failed', 'stopped', 'in_progress')`,
        action,
      )
      if (found !== null) await onDelivery(world, 'retry', found)
      return
    }
    case 'discard': {
      const found = await findDelivery(world, `state IN ('waiting', 'failed')`, action)
      if (found !== null) await onDelivery(world, 'discard', found)
      return
    }
    case 'exhaust':
      return exhaust(world, action)
    case 'signal':
    case 'cancel':
    case 'terminate_workflow': {
      const found = await findDelivery(world, `state IN ('waiting', 'in_progress')`, action)
      const kind = action.kind === 'signal' && action.which % 2 === 0 ? 'signal_retry' : action.kind
      if (found !== null) await onTemporal(world, kind, { ...found, deliveryId: found.id })
      return
    }
    case 'purge':
      return onTemporal(world, 'purge', { organisationId: '', webhookId: null, deliveryId: null })
    case 'erase':
      return erase(world)
    default:
      return onWebhook(world, action)
  }
}

/** What is requested for a webhook, or for all of its organisation. */
async function onWebhook(
  world: PlayWorld,
  action: Extract<PlannedAction, { kind: 'retry_all' | 'discard_failed' | 'replay' | 'test' }>,
): Promise<void> {
  const { which } = action
  const { id, organisationId } = pickWebhook(world, { which: which ?? 0 })
  const noted = { kind: action.kind, organisationId, webhookId: which === null ? null : id, deliveryId: null }
  switch (action.kind) {
    case 'retry_all': {
      const { mode, isFiltered } = action
      const filter = isFiltered && which !== null ? { filter: { eventKey: 'customer:created' } } : {}
      const body = { mode, ...(which === null ? {} : { id }), ...filter }
      await request(world, noted, 'POST', '/webhooks/retry-deliveries', body)
      return
    }
    case 'discard_failed':
      await request(world, noted, 'POST', `/webhooks/${id}/discard-failed`)
      return
    case 'replay': {
      const body = { since: new Date(Date.now() - REPLAYED_MS).toISOString(), include: 'all' }
      await request(world, noted, 'POST', `/webhooks/${id}/replays`, body)
      return
    }
    case 'test':
      await request(world, noted, 'POST', `/webhooks/${id}/test`, {})
  }
}

/** Publishes one event; a keyed one is repeated, also where the first try got no answer. */
export async function publish(
  world: PlayWorld,
  planned: { organisation: number; eventKey: string; isKeyed: boolean; repeats: number },
): Promise<void> {
  const { eventKey, isKeyed, repeats } = planned
  const { organisationId, apiKey } = world.members[planned.organisation]!
  const dataId = `cus_${world.publications.length + 1}`
  const idempotencyKey = isKeyed ? `key-${dataId}` : null
  const publication: Publication = { organisationId, dataId, eventKey, idempotencyKey, tries: [] }
  world.publications.push(publication)
  for (let count = 0; count <= repeats; count++) {
    if (count > 0) await delay(REPEAT_AFTER_MS)
    const headers = { 'x-api-key': apiKey, ...(isKeyed ? { 'idempotency-key': `key-${dataId}` } : {}) }
    const { json, ...answered } = await callPosthorn(world, 'POST', `/api/orgs/${organisationId}/events`, {
      headers,
      body: { event: eventKey, data: { id: dataId } },
    })
    const accepted =
      answered.status === 202
        ? (json as { id: string; deliveries: { id: string; webhookId: string }[] })
        : null
    const deliveries = (accepted?.deliveries ?? []).map(({ id, webhookId }) => ({ id, webhookId }))
    publication.tries.push({ ...answered, eventId: accepted?.id ?? null, deliveries })
  }
}

function onDelivery(world: PlayWorld, kind: 'retry' | 'discard', found: Found): Promise<number> {
  const { id: deliveryId, webhookId, organisationId } = found
  const path = `/webhooks/${webhookId}/deliveries/${deliveryId}/${kind}`
  return request(world, { kind, organisationId, webhookId, deliveryId }, 'POST', path)
}

/** Uses up the attempts of a delivery that keeps failing, by retrying it until it has failed permanently. */
async function exhaust(world: PlayWorld, action: { which: number }): Promise<void> {
  const found = await findDelivery(world, `state = 'waiting' AND attempts >= 3`, action)
  if (found === null) return
  for (let { attempts } = found; attempts < MAX_ATTEMPTS; attempts++) {
    if ((await onDelivery(world, 'retry', found)) !== 202) return
    const deadline = nowMs() + OUTCOME_LIMIT_MS
    while ((await attemptsOf(world, found.id)) <= attempts) {
      if (nowMs() > deadline) return
      await delay(100)
    }
  }
}

/** Erases one organisation, and asks for it until that is confirmed. */
async function erase(world: PlayWorld): Promise<void> {
  const { organisationId } = world.members[ORGANISATIONS.indexOf('erased')]!
  const path = `/api/operator/organisations/${organisationId}`
  const headers = { 'x-operator-key': secretOf('all') }
  const action = note(world, { kind: 'erase', organisationId, webhookId: null, deliveryId: null })
  for (;;) {
    const { process, to, status } = await callPosthorn(world, 'DELETE', path, { headers })
    // Gone already: an earlier answer was lost.
    const isErased = status === 202 || status === 404
    Object.assign(action, { process, status, to: isErased ? to : Infinity })
    if (isErased) return
    await delay(REPEAT_AFTER_MS)
  }
}

/** Sends a request and notes it in the journal, from its begin on. Returns the status, 0 where no answer came. */
export async function request(
  world: PlayWorld,
  noted: Pick<UserAction, 'kind' | 'organisationId' | 'webhookId' | 'deliveryId'> & Partial<UserAction>,
  method: string,
  path: string,
  body?: unknown,
): Promise<number> {
  const action = note(world, noted)
  const { organisationId } = noted
  const { apiKey } = world.members.find((member) => member.organisationId === organisationId)!
  const { process, to, status } = await callPosthorn(world, method, `/api/orgs/${organisationId}${path}`, {
    headers: { 'x-api-key': apiKey },
    ...(body === undefined ? {} : { body }),
  })
  Object.assign(action, { process, to, status })
  return status
}

export function note(
  world: PlayWorld,
  noted: Pick<UserAction, 'kind' | 'organisationId' | 'webhookId' | 'deliveryId'> & Partial<UserAction>,
): UserAction {
  const action: UserAction = { change: null, process: null, from: nowMs(), to: Infinity, status: 0, ...noted }
  world.actions.push(action)
  return action
}

/** Picks a webhook that exists, of an organisation other than the victim's. */
function pickWebhook({ webhooks }: PlayWorld, { which }: { which: number }): WorldWebhook {
  const there = webhooks.filter(({ isVictim, isDeleted }) => !isVictim && !isDeleted)
  return there[which % there.length]!
}

/** Of an organisation other than the victim's. */
async function findDelivery(
  { database, members }: PlayWorld,
  condition: string,
  { which }: { which: number },
): Promise<Found | null> {
  const found = await database.query<Found>(
    `SELECT id, webhook_id AS "webhookId", organisation_id AS "organisationId", attempts
       FROM delivery WHERE organisation_id <> $1 AND ${condition} ORDER BY id`,
    [members[VICTIM]!.organisationId],
  )
  return found[which % Math.max(1, found.length)] ?? null
}

async function attemptsOf({ database }: PlayWorld, deliveryId: string): Promise<number> {
  const found = await database.query<{ attempts: number }>('SELECT attempts FROM delivery WHERE id = $1', [
    deliveryId,
  ])
  return found[0]?.attempts ?? 0
}

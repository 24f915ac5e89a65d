import { setTimeout as delay } from 'node:timers/promises'
import type { RetryMode } from '../../../src/domain/delivery-filter.ts'
import { callPosthorn } from './call-posthorn.ts'
import { nowMs } from './clock.ts'
import type { PlannedAction } from './plan.ts'
import type { Publication, UserAction } from './record.ts'
import type { PlayWorld } from './world.ts'

type Found = { id: string; webhookId: string; attempts: number }

/** After that many attempts a delivery has failed permanently (spec 8.1). */
const MAX_ATTEMPTS = 10
/** How long a member waits for the outcome of one retry before asking for the next. */
const OUTCOME_LIMIT_MS = 3_000
const REPEAT_AFTER_MS = 300

/** Carries out one planned action and notes it in the journal. Never throws for what Posthorn answers. */
export async function act(world: PlayWorld, action: PlannedAction): Promise<void> {
  switch (action.kind) {
    case 'publish':
      await Promise.all(Array.from({ length: action.count }, () => publish(world, action)))
      return
    case 'switch': {
      const { id } = at(world.webhooks, action.which)
      await setEnabled(world, id, false)
      await delay(action.offMs)
      await switchOn(world, id)
      return
    }
    case 'retry': {
      const found = await findDelivery(
        world,
        `state IN ('waiting', 'failed', 'stopped', 'in_progress')`,
        action,
      )
      if (found !== null) await retry(world, found)
      return
    }
    case 'retry_all': {
      const webhookId = action.which === null ? null : at(world.webhooks, action.which).id
      await retryAll(world, action.mode, webhookId)
      return
    }
    case 'discard': {
      const found = await findDelivery(world, `state IN ('waiting', 'failed')`, action)
      if (found === null) return
      const { id: deliveryId, webhookId } = found
      const path = `/webhooks/${webhookId}/deliveries/${deliveryId}/discard`
      await request(world, { kind: 'discard', webhookId, deliveryId }, 'POST', path)
      return
    }
    case 'discard_failed': {
      const { id: webhookId } = at(world.webhooks, action.which)
      const path = `/webhooks/${webhookId}/discard-failed`
      await request(world, { kind: 'discard_failed', webhookId, deliveryId: null }, 'POST', path)
      return
    }
    case 'exhaust':
      await exhaust(world, action)
  }
}

/** Publishes one event; a keyed one is repeated, also where the first try got no answer. */
export async function publish(
  world: PlayWorld,
  { eventKey, isKeyed, repeats }: { eventKey: string; isKeyed: boolean; repeats: number },
): Promise<void> {
  const dataId = `cus_${world.publications.length + 1}`
  const idempotencyKey = isKeyed ? `key-${dataId}` : null
  const publication: Publication = { dataId, eventKey, idempotencyKey, tries: [] }
  world.publications.push(publication)
  for (let count = 0; count <= repeats; count++) {
    if (count > 0) await delay(REPEAT_AFTER_MS)
    const body = { event: eventKey, data: { id: dataId } }
    const answered = await callPosthorn(world, 'POST', '/events', { body, idempotencyKey })
    const { from, to, status } = answered
    const accepted = status === 202 ? (answered.json as { id: string; deliveries: Found[] }) : null
    const deliveries = (accepted?.deliveries ?? []).map(({ id, webhookId }) => ({ id, webhookId }))
    publication.tries.push({ from, to, status, eventId: accepted?.id ?? null, deliveries })
  }
}

/** Asks for a retry job, for one webhook or all of them. Returns the status. */
export async function retryAll(world: PlayWorld, mode: RetryMode, webhookId: string | null): Promise<number> {
  const body = { mode, ...(webhookId === null ? {} : { id: webhookId }) }
  const noted = { kind: 'retry_all', webhookId, deliveryId: null } as const
  return request(world, noted, 'POST', '/webhooks/retry-deliveries', body)
}

/** Switches a webhook on, and tries again until that is confirmed. */
export async function switchOn(world: PlayWorld, webhookId: string): Promise<void> {
  const deadline = nowMs() + 120_000
  while ((await setEnabled(world, webhookId, true)) !== 200) {
    if (nowMs() > deadline) throw new Error(`webhook ${webhookId} could not be switched on`)
    await delay(REPEAT_AFTER_MS)
  }
}

function setEnabled(world: PlayWorld, webhookId: string, enabled: boolean): Promise<number> {
  const kind = enabled ? 'switch_on' : 'switch_off'
  return request(world, { kind, webhookId, deliveryId: null }, 'PATCH', `/webhooks/${webhookId}`, { enabled })
}

function retry(world: PlayWorld, { id: deliveryId, webhookId }: Found): Promise<number> {
  const path = `/webhooks/${webhookId}/deliveries/${deliveryId}/retry`
  return request(world, { kind: 'retry', webhookId, deliveryId }, 'POST', path)
}

/** Uses up the attempts of a delivery that keeps failing, by retrying it until it has failed permanently. */
async function exhaust(world: PlayWorld, action: { which: number }): Promise<void> {
  const found = await findDelivery(world, `state = 'waiting' AND attempts >= 3`, action)
  if (found === null) return
  for (let { attempts } = found; attempts < MAX_ATTEMPTS; attempts++) {
    if ((await retry(world, found)) !== 202) return
    const deadline = nowMs() + OUTCOME_LIMIT_MS
    while ((await attemptsOf(world, found.id)) <= attempts) {
      if (nowMs() > deadline) return
      await delay(100)
    }
  }
}

/** Sends a request and notes it in the journal, from its begin on. Returns the status, 0 where no answer came. */
async function request(
  world: PlayWorld,
  noted: Pick<UserAction, 'kind' | 'webhookId' | 'deliveryId'>,
  method: string,
  path: string,
  body?: unknown,
): Promise<number> {
  const action: UserAction = { ...noted, from: nowMs(), to: Infinity, status: 0 }
  world.actions.push(action)
  const { to, status } = await callPosthorn(world, method, path, body === undefined ? {} : { body })
  action.to = to
  action.status = status
  return status
}

async function findDelivery(
  { dataSource }: PlayWorld,
  condition: string,
  { which }: { which: number },
): Promise<Found | null> {
  const found = await dataSource.query<Found[]>(
    `SELECT id, webhook_id AS "webhookId", attempts FROM delivery WHERE ${condition} ORDER BY id`,
  )
  return found.length === 0 ? null : at(found, which)
}

async function attemptsOf({ dataSource }: PlayWorld, deliveryId: string): Promise<number> {
  const found = await dataSource.query<{ attempts: number }[]>(
    'SELECT attempts FROM delivery WHERE id = $1',
    [deliveryId],
  )
  return found[0]?.attempts ?? 0
}

function at<T>(from: readonly T[], which: number): T {
  return from[which % from.length]!
}

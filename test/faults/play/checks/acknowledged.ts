import type { DeliveryFacts, Facts, PlayedWebhook, PlayRecord, Publication, Violation } from '../record.ts'
import { groupBy, isConfirmed } from '../ledger.ts'
import { certainlyTakes, isCreatedAfter } from '../webhook-history.ts'

const RULE = 'acknowledged events'
const MAX_ATTEMPTS = 10

type Index = {
  facts: Facts
  webhooks: Map<string, PlayedWebhook>
  webhooksOf: Map<string, PlayedWebhook[]>
  events: Map<string, string[]>
  deliveries: Map<string, DeliveryFacts>
  confirmed: Set<string>
}

/** Every acknowledged event is there once, with a delivery for each webhook, and each is delivered or accounted for. */
export function checkAcknowledged(record: PlayRecord): Violation[] {
  const { facts } = record
  if (facts === null) return []
  const index: Index = {
    facts,
    webhooks: new Map(record.webhooks.map((webhook) => [webhook.id, webhook])),
    webhooksOf: groupBy(record.webhooks, ({ organisationId }) => organisationId),
    events: new Map(),
    deliveries: new Map(facts.deliveries.map((delivery) => [delivery.id, delivery])),
    confirmed: new Set(record.posts.filter(isConfirmed).map(({ deliveryId }) => deliveryId)),
  }
  for (const { id, dataId } of facts.events)
    if (dataId !== null) index.events.set(dataId, [...(index.events.get(dataId) ?? []), id])
  const erased = new Set(
    record.actions.filter(({ kind }) => kind === 'erase').map(({ organisationId }) => organisationId),
  )
  return [
    ...record.publications
      .filter(({ organisationId }) => !erased.has(organisationId))
      .flatMap((publication) => checkPublication(record, publication, index)),
    ...facts.deliveries.flatMap((delivery) => {
      const detail = unaccountedEnd(record, delivery, index)
      return detail === null ? [] : [{ rule: RULE, deliveryId: delivery.id, detail }]
    }),
  ]
}

function checkPublication(record: PlayRecord, publication: Publication, index: Index): Violation[] {
  const { organisationId, dataId, eventKey, idempotencyKey, tries } = publication
  const violations: Violation[] = []
  const violation = (detail: string): void =>
    void violations.push({ rule: RULE, deliveryId: null, detail: `${dataId}: ${detail}` })
  const stored = index.events.get(dataId) ?? []
  const accepted = tries.filter(({ status }) => status === 202)
  for (const { eventId, deliveries, from, to } of accepted) {
    if (!stored.some((id) => id === eventId)) violation(`event ${eventId} is missing`)
    for (const { id } of deliveries)
      if (index.deliveries.get(id)?.eventId !== eventId) violation(`delivery ${id} is missing`)
    const since = idempotencyKey === null ? from : tries[0]!.from
    for (const webhook of index.webhooksOf.get(organisationId) ?? []) {
      const has = deliveries.some(({ webhookId }) => webhookId === webhook.id)
      if (isCreatedAfter(record, webhook, since)) continue
      const takes = certainlyTakes(record, webhook, eventKey, since, to)
      if (takes === true && !has) violation(`no delivery for the webhook "${webhook.name}" ${webhook.id}`)
      if (takes === false && has)
        violation(`a delivery for "${webhook.name}" ${webhook.id}, which does not take it`)
    }
  }
  const most = idempotencyKey === null ? tries.length : 1
  const least = idempotencyKey === null ? accepted.length : Math.min(1, accepted.length)
  if (stored.length < least || stored.length > most)
    violation(`${stored.length} events stored, ${least} to ${most} expected`)
  if (idempotencyKey !== null && new Set(accepted.map(({ eventId }) => eventId)).size > 1)
    violation('one Idempotency-Key was answered with several events')
  return violations
}

/** Deliveries are completed with a confirmed POST, stopped by a member, failed after all attempts, or wait to be due. */
function unaccountedEnd(record: PlayRecord, delivery: DeliveryFacts, index: Index): string | null {
  const { id, webhookId, state, attempts, isTest, stopReason } = delivery
  switch (state) {
    case 'completed':
      return index.confirmed.has(id) ? null : 'completed, but no POST of it was confirmed'
    case 'failed':
      return attempts >= MAX_ATTEMPTS ? null : `failed after ${attempts} attempts`
    case 'stopped': {
      if (isTest && attempts > 0) return null
      if (!isStoppedByMember(record, delivery, index)) return 'stopped, but no member stopped it'
      const webhook = index.webhooks.get(webhookId)
      const isHeldUp = attempts === 0 && !isTest && stopReason !== 'discarded' && webhook !== undefined
      const key = eventKeyOf(delivery, index)
      if (isHeldUp && certainlyTakes(record, webhook, key, record.endedAt, record.endedAt) === true)
        return 'stopped before its first attempt, and not resumed with its webhook'
      return null
    }
    default:
      // `unfinished.ts` has what is overdue.
      return null
  }
}

function eventKeyOf({ eventId }: DeliveryFacts, { facts }: Index): string {
  const body = facts.events.find(({ id }) => id === eventId)?.body ?? '{}'
  return String((JSON.parse(body) as { event?: string }).event)
}

function isStoppedByMember({ actions }: PlayRecord, { id, webhookId }: DeliveryFacts, index: Index): boolean {
  const organisationId = index.webhooks.get(webhookId)?.organisationId
  return actions.some((action) => {
    switch (action.kind) {
      case 'discard':
        return action.deliveryId === id
      case 'discard_failed':
        return action.webhookId === webhookId
      case 'change':
        return action.webhookId === webhookId && action.change?.urlVersion === undefined
      case 'erase':
        return action.organisationId === organisationId
      default:
        return false
    }
  })
}

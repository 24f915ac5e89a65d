import type { DeliveryFacts, PlayRecord, Publication, UserAction } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'acknowledged events'
const MAX_ATTEMPTS = 10

/** Every acknowledged event is there once, with a delivery for each webhook, and each is delivered or accounted for. */
export function checkAcknowledged(record: PlayRecord): Violation[] {
  return [
    ...record.publications.flatMap((publication) => checkPublication(record, publication)),
    ...checkEnds(record),
  ]
}

function checkPublication(record: PlayRecord, publication: Publication): Violation[] {
  const { dataId, idempotencyKey, tries } = publication
  const violation = (detail: string): Violation => ({
    rule: RULE,
    deliveryId: null,
    detail: `${dataId}: ${detail}`,
  })
  const stored = record.facts.events.filter((event) => event.dataId === dataId)
  const accepted = tries.filter(({ status }) => status === 202)
  const violations: Violation[] = []
  for (const { eventId, deliveries, from, to } of accepted) {
    if (!stored.some(({ id }) => id === eventId)) violations.push(violation(`event ${eventId} is missing`))
    for (const { id } of deliveries)
      if (!record.facts.deliveries.some((delivery) => delivery.id === id && delivery.eventId === eventId))
        violations.push(violation(`delivery ${id} is missing`))
    for (const webhook of record.webhooks)
      if (
        isSubscribed(webhook.subscribedEventKeys, publication.eventKey) &&
        wasOn(record.actions, webhook.id, idempotencyKey === null ? from : tries[0]!.from, to) &&
        !deliveries.some(({ webhookId }) => webhookId === webhook.id)
      )
        violations.push(violation(`no delivery for the webhook "${webhook.name}"`))
  }
  const most = idempotencyKey === null ? tries.length : 1
  const least = idempotencyKey === null ? accepted.length : Math.min(1, accepted.length)
  if (stored.length < least || stored.length > most)
    violations.push(violation(`${stored.length} events stored, ${least} to ${most} expected`))
  if (idempotencyKey !== null && new Set(accepted.map(({ eventId }) => eventId)).size > 1)
    violations.push(violation('one Idempotency-Key was answered with several events'))
  return violations
}

function isSubscribed(keys: readonly string[], eventKey: string): boolean {
  return keys.includes('*') || keys.includes(eventKey)
}

/** It was certainly switched on during all of that time: every switch-off before its end was undone before its begin. */
function wasOn(actions: readonly UserAction[], webhookId: string, from: number, to: number): boolean {
  const switches = actions.filter(
    (action) =>
      action.webhookId === webhookId && (action.kind === 'switch_off' || action.kind === 'switch_on'),
  )
  return switches.every((action) => {
    if (action.kind === 'switch_on' || action.from > to) return true
    // Without an answer it may have been carried out at any time since.
    if (action.status !== 200) return false
    const on = switches.find(
      ({ kind, status, from: begun }) => kind === 'switch_on' && status === 200 && begun >= action.to,
    )
    return on !== undefined && on.to < from
  })
}

/** Deliveries are completed with a confirmed POST, stopped by a member, or failed after all of their attempts. */
function checkEnds(record: PlayRecord): Violation[] {
  const violations: Violation[] = []
  const confirmed = new Set(record.posts.filter(isConfirmed).map(({ deliveryId }) => deliveryId))
  for (const delivery of record.facts.deliveries) {
    const detail = unaccountedEnd(record, delivery, confirmed)
    if (detail !== null) violations.push({ rule: RULE, deliveryId: delivery.id, detail })
  }
  return violations
}

function unaccountedEnd(record: PlayRecord, delivery: DeliveryFacts, confirmed: Set<string>): string | null {
  switch (delivery.state) {
    case 'completed':
      return confirmed.has(delivery.id) ? null : 'completed, but no POST of it was confirmed'
    case 'failed':
      return delivery.attempts >= MAX_ATTEMPTS ? null : `failed after ${delivery.attempts} attempts`
    case 'stopped':
      return isStoppedByMember(record, delivery) ? null : 'stopped, but no member stopped it'
    default:
      return `still ${delivery.state} at the end: ${delivery.row}`
  }
}

function isStoppedByMember({ actions }: PlayRecord, { id, webhookId }: DeliveryFacts): boolean {
  return actions.some(({ kind, ...action }) => {
    if (kind === 'discard') return action.deliveryId === id
    return (kind === 'switch_off' || kind === 'discard_failed') && action.webhookId === webhookId
  })
}

function isConfirmed({ status }: { status: number | null }): boolean {
  return status !== null && status >= 200 && status < 300
}

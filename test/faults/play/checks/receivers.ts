import { verify } from '@octokit/webhooks-methods'
import { HOLDS_UP, isOfProcess } from '../ledger.ts'
import type { PlayedWebhook, PlayRecord, Violation } from '../record.ts'
import { certainlyWas } from '../webhook-history.ts'

const SAME = 'every POST of a delivery is the same'
const TAKEN = 'nothing is sent to a webhook that does not take it'

/** A POST that was decided on before a change arrives within that time, in ms: one second is promised. */
const SENT_WITHIN_MS = 2_000

/** All POSTs of a delivery carry the bytes of its event and one signature that verifies, and go where they are taken. */
export async function checkReceivers(record: PlayRecord): Promise<Violation[]> {
  const violations: Violation[] = []
  const bodyOf = new Map(record.facts?.events.map(({ id, body }) => [id, body]))
  const deliveryOf = new Map(record.facts?.deliveries.map((delivery) => [delivery.id, delivery]))
  const webhookOf = new Map(record.webhooks.map((webhook) => [webhook.id, webhook]))
  const erased = new Set(
    record.actions.filter(({ kind }) => kind === 'erase').map(({ organisationId }) => organisationId),
  )
  const firstBody = new Map<string, string>()
  for (const post of record.posts) {
    const { id, deliveryId, webhookId, body, signature } = post
    const violation = (rule: string, detail: string): void =>
      void violations.push({ rule, deliveryId, detail: `post ${id} ${detail}` })
    const webhook = webhookOf.get(webhookId)
    const delivery = deliveryOf.get(deliveryId)
    if (webhook === undefined) violation(SAME, 'went to no webhook')
    if (firstBody.get(deliveryId) === undefined) firstBody.set(deliveryId, body)
    else if (body !== firstBody.get(deliveryId)) violation(SAME, 'has other bytes than the first')
    const isErased = webhook !== undefined && erased.has(webhook.organisationId)
    if (record.facts !== null && !isErased) {
      if (delivery === undefined) violation(SAME, 'is of no delivery')
      else {
        if (delivery.webhookId !== webhookId) violation(SAME, 'went to another webhook')
        if (body !== bodyOf.get(delivery.eventId)) violation(SAME, 'has other bytes than its event')
      }
    }
    const secret = webhook?.signingSecret ?? ''
    if (secret !== '' && (signature === '' || !(await verify(secret, body, signature))))
      violation(SAME, 'has a signature that does not verify')
    if (webhook !== undefined && delivery?.isTest !== true) {
      const detail = unwanted(record, webhook, post)
      if (detail !== null) violation(TAKEN, detail)
    }
  }
  return violations
}

/** Nothing comes later than a moment after a change was answered, but from a process that was paused. */
function unwanted(
  record: PlayRecord,
  webhook: PlayedWebhook,
  post: PlayRecord['posts'][number],
): string | null {
  const { body, sender, arrivedAt, urlVersion } = post
  const {
    isThere,
    enabled,
    keys,
    urlVersion: version,
  } = certainlyWas(record, webhook, arrivedAt - SENT_WITHIN_MS, arrivedAt)
  const key = eventKeyIn(body)
  const isWrong =
    isThere === false ||
    enabled === false ||
    (keys !== null && key !== null && !keys.includes('*') && !keys.includes(key)) ||
    (version !== null && version !== urlVersion)
  if (!isWrong) return null
  const wasPaused = record.faults.some(
    (fault) =>
      HOLDS_UP.includes(fault.kind) &&
      isOfProcess(fault, sender) &&
      fault.from <= arrivedAt &&
      fault.to >= arrivedAt - SENT_WITHIN_MS,
  )
  if (wasPaused) return null
  if (isThere === false) return 'came after the deletion'
  if (enabled === false) return 'came after the switch-off'
  return version !== urlVersion ? 'came to the URL before' : `came after ${key} was removed`
}

function eventKeyIn(body: string): string | null {
  try {
    return (JSON.parse(body) as { event?: string }).event ?? null
  } catch {
    return null
  }
}

import { verify } from '@octokit/webhooks-methods'
import type { PlayRecord } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'every POST of a delivery is the same'

/** All POSTs of a delivery carry the bytes of its event, one signature that verifies, and go to its own webhook. */
export async function checkIdentity(record: PlayRecord): Promise<Violation[]> {
  const violations: Violation[] = []
  const { deliveries, events } = record.facts
  const bodyOf = new Map(events.map(({ id, body }) => [id, body]))
  const deliveryOf = new Map(deliveries.map((delivery) => [delivery.id, delivery]))
  const secretOf = new Map(record.webhooks.map(({ id, signingSecret }) => [id, signingSecret]))
  for (const { id, deliveryId, webhookId, body, signature } of record.posts) {
    const violation = (detail: string): void =>
      void violations.push({ rule: RULE, deliveryId, detail: `post ${id} ${detail}` })
    const delivery = deliveryOf.get(deliveryId)
    if (delivery === undefined) {
      violation('is of no delivery')
      continue
    }
    if (delivery.webhookId !== webhookId) violation('went to another webhook')
    if (body !== bodyOf.get(delivery.eventId)) violation('has other bytes than its event')
    if (signature === '' || !(await verify(secretOf.get(webhookId) ?? 'none', body, signature)))
      violation('has a signature that does not verify')
  }
  return violations
}

import { randomUUID } from 'node:crypto'
import type { DataSource } from 'typeorm'
import { claimAttempts } from '../../../src/deliveries/protocol/claim.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import {
  recordFailures,
  recordSuccesses,
  type AttemptRecord,
} from '../../../src/deliveries/protocol/record-attempts.ts'

/** What an attempt brought; unless said otherwise an HTTP 503 of the receiver. */
export type AttemptFacts = Partial<Omit<AttemptRecord, 'organisationId' | 'deliveryId' | 'number'>> & {
  next?: 'completed' | 'waiting' | 'failed'
}

/** Claims and records attempt `number` of a delivery as the delivery path does, without a POST. */
export async function attempt(
  dataSource: DataSource,
  { organisationId, deliveryId, url }: CommittedDelivery,
  number: number,
  { next = 'waiting', ...facts }: AttemptFacts = {},
): Promise<void> {
  const key = { organisationId, deliveryId, number }
  const owner = randomUUID()
  // As if the time of its wait were over.
  await dataSource.query(`UPDATE delivery SET next_attempt_at = now() WHERE id = $1 AND state = 'waiting'`, [
    deliveryId,
  ])
  const [claim] = await claimAttempts(dataSource, [{ ...key, owner, isWorkflow: true }], 60_000)
  if (claim === undefined || claim === null) throw new Error('the row could not be claimed')
  const record = {
    ...key,
    trigger: 'schedule' as const,
    url,
    startedAt: new Date(),
    durationMs: 12,
    failureCode: next === 'completed' ? null : ('http_status' as const),
    statusCode: next === 'completed' ? 200 : 503,
    error: next === 'completed' ? null : 'The endpoint answered HTTP 503.',
    response: null,
    owner,
    ...facts,
  }
  if (next === 'completed') {
    await recordSuccesses(dataSource, [record], null)
    return
  }
  const dueInMs = next === 'waiting' ? 60_000 : null
  await recordFailures(dataSource, [{ ...record, next, dueInMs }], null)
}

import type { DataSource } from 'typeorm'
import { claimAttempt } from '../../../src/db/queries/claims.ts'
import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import { recordFailures, recordSuccesses, type AttemptRecord } from '../../../src/db/queries/outcomes.ts'
import { TEST_PROCESS } from '../../helpers/database/factories.ts'

/** What an attempt brought; unless said otherwise an HTTP 503 of the receiver. */
export type AttemptFacts = Partial<Omit<AttemptRecord, 'organisationId' | 'deliveryId' | 'number'>> & {
  next?: 'completed' | 'waiting' | 'failed'
}

const LEASE = { owner: TEST_PROCESS, leaseMs: 60_000, sweepAfterMs: 60_000, onlyIfDue: false, inline: false }

/** Claims and records attempt `number` of a delivery as the delivery path does, without a POST. */
export async function attempt(
  dataSource: DataSource,
  { organisationId, deliveryId, url }: DeliveryToStart,
  number: number,
  { next = 'waiting', ...facts }: AttemptFacts = {},
): Promise<void> {
  const key = { organisationId, deliveryId, number }
  if ((await claimAttempt(dataSource, key, LEASE)) === null) throw new Error('the row could not be claimed')
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
    owner: TEST_PROCESS,
    underLease: false,
    ...facts,
  }
  if (next === 'completed') {
    await recordSuccesses(dataSource, [record], false)
    return
  }
  const dueInMs = next === 'waiting' ? 60_000 : null
  await recordFailures(dataSource, [{ ...record, next, dueInMs, sweepAfterMs: 60_000, startAfterMs: 60_000 }])
}

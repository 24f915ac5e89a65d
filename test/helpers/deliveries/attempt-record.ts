import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import type { AttemptRecord } from '../../../src/db/queries/outcomes.ts'

/** What is recorded for the first attempt of a delivery that its endpoint answered with 204, but for `changes`. */
export function attemptRecord(
  { deliveryId, organisationId, url }: DeliveryToStart,
  changes: Pick<AttemptRecord, 'owner' | 'underLease'> & Partial<AttemptRecord>,
): AttemptRecord {
  return {
    deliveryId,
    organisationId,
    number: 1,
    trigger: 'schedule',
    url,
    startedAt: new Date('2026-01-02T03:04:05.678Z'),
    durationMs: 12,
    failureCode: null,
    statusCode: 204,
    error: null,
    response: { headers: { 'content-type': 'text/plain' }, body: 'ok', truncated: false },
    ...changes,
  }
}

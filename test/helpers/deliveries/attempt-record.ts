import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import type { AttemptRecord } from '../../../src/deliveries/protocol/record-attempts.ts'

/** What is recorded for the first attempt of a delivery that its endpoint answered with 204, but for `changes`. */
export function attemptRecord(
  { deliveryId, organisationId, url }: Pick<CommittedDelivery, 'deliveryId' | 'organisationId' | 'url'>,
  changes: Pick<AttemptRecord, 'owner'> & Partial<AttemptRecord>,
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

import { serialiseEnvelope, generateTraceId } from './envelope.ts'

/** Returns the envelope of a test event, by which a user checks an endpoint. */
export function testEnvelope(
  key: string,
  data: object,
): { key: string; body: Buffer; emittedAt: Date; traceId: string } {
  const emittedAt = new Date()
  const traceId = generateTraceId()
  const body = serialiseEnvelope({
    event: key,
    dataText: JSON.stringify(data),
    timestamp: emittedAt.getTime(),
    traceId,
    spanId: null,
    triggeredBy: null,
  })
  return { key, body, emittedAt, traceId }
}

import { randomBytes } from 'node:crypto'

/** The fields of an envelope (spec 2.2); `dataText` is the JSON text of `data` as the producer wrote it. */
export type EnvelopeFields = {
  event: string
  dataText: string
  /** Unix ms. */
  timestamp: number
  traceId: string
  spanId: string | null
  /** Null for system actions. */
  triggeredBy: { id: string; name: string } | null
}

/** Returns the exact bytes that are stored, signed and sent on every attempt: one line of JSON. */
export function serialiseEnvelope(fields: EnvelopeFields): Buffer {
  const { event, dataText, timestamp, traceId, spanId, triggeredBy } = fields
  const members = [
    `"event":${JSON.stringify(event)}`,
    `"data":${dataText}`,
    `"timestamp":${timestamp}`,
    `"traceId":${JSON.stringify(traceId)}`,
    ...(spanId === null ? [] : [`"spanId":${JSON.stringify(spanId)}`]),
    `"triggeredBy":${triggeredBy === null ? 'null' : JSON.stringify({ id: triggeredBy.id, name: triggeredBy.name })}`,
  ]
  return Buffer.from(`{${members.join(',')}}`)
}

/** Returns 16 random bytes as 32 hexadecimal characters, the form of a W3C trace id. */
export function generateTraceId(): string {
  return randomBytes(16).toString('hex')
}

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

import { TEST_EVENT_KEY } from '../domain/permissions.ts'
import { serialiseEnvelope } from './envelope.ts'
import { generateTraceId } from './trace-id.ts'

/** The envelope of a test event: a person wants to see whether an endpoint answers. */
export function testEnvelope(webhookId: string): {
  key: string
  body: Buffer
  emittedAt: Date
  traceId: string
} {
  const emittedAt = new Date()
  const traceId = generateTraceId()
  const body = serialiseEnvelope({
    event: TEST_EVENT_KEY,
    dataText: JSON.stringify({ webhookId }),
    timestamp: emittedAt.getTime(),
    traceId,
    spanId: null,
    triggeredBy: null,
  })
  return { key: TEST_EVENT_KEY, body, emittedAt, traceId }
}

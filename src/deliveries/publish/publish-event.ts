import type { Actor } from '../../domain/actor.ts'
import type { IdempotentRequest } from '../../db/queries/idempotency.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { Publisher } from './publish.ts'
import { memberText, stripWhiteSpace } from '../../domain/text-rules.ts'
import { generateTraceId, newEvent, type Envelope } from './envelope.ts'

type Dependencies = {
  publish: Publisher
  dispatcher: Pick<Dispatcher, 'start'>
  metrics: Pick<Metrics, 'eventPublished'>
}

/** The parts of the envelope that the sender gives; `json` is the whole request body as it was sent. */
type Sent = { event: string; json: string } & {
  [Field in 'timestamp' | 'traceId' | 'spanId' | 'triggeredBy']?: Envelope[Field] | null
}

type PublishedEvent = {
  id: string
  deliveries: { id: string; webhookId: string }[]
  trace: { traceId: string; spanId: string | null } | null
}

/** The trace and the span that a request belongs to (W3C Trace Context). */
export type TraceContext = { traceId: string; spanId: string }

/**
 * Commits an event with its deliveries and passes these to the dispatcher, which does not delay the answer.
 * `context` fills the trace and the span where the sender gives none; its span only inside its own trace. Returns the trace
 * of the event too; null for a replayed answer, whose event was committed by an earlier request.
 */
export async function publishEvent(
  { publish, dispatcher, metrics }: Dependencies,
  { organisationId }: Actor,
  sent: Sent,
  context: TraceContext | null,
  idempotency: IdempotentRequest | null,
): Promise<PublishedEvent> {
  const traceId = sent.traceId ?? context?.traceId ?? generateTraceId()
  const spanId = sent.spanId ?? (traceId === context?.traceId ? context.spanId : null)
  const { event, timestamp, triggeredBy = null } = sent
  const dataText = memberText(stripWhiteSpace(sent.json), 'data')
  if (dataText === null) throw new Error('data is missing in a validated request')
  const envelope = { event, dataText, timestamp: timestamp ?? Date.now(), traceId, spanId, triggeredBy }
  const { id, deliveries, toStart, replayed } = await publish(newEvent(organisationId, envelope), idempotency)
  if (!replayed) metrics.eventPublished(deliveries.length)
  dispatcher.start(toStart)
  return { id, deliveries, trace: replayed ? null : { traceId, spanId } }
}

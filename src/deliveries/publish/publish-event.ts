import type { Actor } from '../../domain/actor.ts'
import type { IdempotentRequest } from '../../db/queries/idempotency.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { tracePublishing, type TraceContext } from '../../observability/tracing.ts'
import type { Publisher } from './publish.ts'
import { memberText, stripWhiteSpace } from '../../domain/text-rules.ts'
import { generateTraceId, newEvent, type Envelope } from './envelope.ts'

type Dependencies = {
  publish: Publisher
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

/**
 * Publishes an event. `caller`, or else the span of the publishing, fills the trace and the span where the sender gives
 * none; its span only inside its own trace. Returns the trace of the event too; null for a replayed answer, whose event
 * was committed by an earlier request.
 */
export function publishEvent(
  dependencies: Dependencies,
  { organisationId }: Actor,
  sent: Sent,
  caller: TraceContext | null,
  idempotency: IdempotentRequest | null,
): Promise<PublishedEvent> {
  const { event: eventKey, traceId, spanId } = sent
  const parent = caller ?? (traceId && spanId ? { traceId, spanId, isSampled: true } : null)
  return tracePublishing({ organisationId, eventKey }, parent, (own) =>
    commit(dependencies, organisationId, sent, caller ?? own, idempotency),
  )
}

async function commit(
  { publish, metrics }: Dependencies,
  organisationId: string,
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
  const { id, deliveries, replayed } = await publish(newEvent(organisationId, envelope), idempotency)
  if (!replayed) metrics.eventPublished(deliveries.length)
  return { id, deliveries, trace: replayed ? null : { traceId, spanId } }
}

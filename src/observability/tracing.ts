import {
  context as contexts,
  createContextKey,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Attributes,
  type SpanContext,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api'
import { LRUCache } from 'lru-cache'
import { setTimeout as delay } from 'node:timers/promises'
import { shortenUrl } from '../domain/webhook-name.ts'

// Spans by OpenTelemetry's API. Without an SDK in the process no function here does anything but its work. Attributes
// are those of the semantic conventions for HTTP clients and messaging, and `posthorn.…`.

/** A trace and a span in it (W3C Trace Context). `isSampled`: the trace is recorded where it began. */
export type TraceContext = { traceId: string; spanId: string; isSampled: boolean }

const SYSTEM = 'posthorn'

/**
 * Runs `publish` in a PRODUCER span: below the span that an instrumentation of the process has active, else below the one
 * of `caller`, else as the first of a trace. `publish` gets the ids of the span; null where nothing records it.
 */
export async function tracePublishing<P extends { id: string; deliveries: readonly unknown[] }>(
  { organisationId, eventKey }: { organisationId: string; eventKey: string },
  caller: TraceContext | null,
  publish: (own: TraceContext | null) => Promise<P>,
): Promise<P> {
  const tracer = findTracer()
  if (tracer === null) return publish(null)
  const attributes = {
    'messaging.system': SYSTEM,
    'messaging.operation.name': 'publish',
    'messaging.operation.type': 'send',
    'messaging.destination.name': eventKey,
    'posthorn.organisation.id': organisationId,
  }
  const active = contexts.active()
  const parent = trace.getSpan(active) === undefined ? below(remoteSpan(caller)) : active
  const span = tracer.startSpan(`publish ${eventKey}`, { kind: SpanKind.PRODUCER, attributes }, parent)
  try {
    const { traceId, spanId } = span.spanContext()
    const published = await publish(span.isRecording() ? { traceId, spanId, isSampled: true } : null)
    span.setAttributes({
      'messaging.message.id': published.id,
      'posthorn.deliveries': published.deliveries.length,
    })
    return published
  } catch (error) {
    span.setAttribute('error.type', error instanceof Error ? error.name : 'unknown')
    span.setStatus({ code: SpanStatusCode.ERROR })
    throw error
  } finally {
    span.end()
  }
}

/** What a span needs to know of an attempt. `body`: the envelope. */
type TracedAttempt = { organisationId: string; deliveryId: string; number: number }
type TracedClaim = { webhookId: string; eventKey: string; traceId: string; url: string; body: Buffer }

type TracedResult = {
  succeeded: boolean
  failureCode: string | null
  statusCode: number | null
  isInconclusive: boolean
}

/** The event at the end of each phase of a new connection. */
const PHASE_EVENTS = { dns: 'dns.resolved', connect: 'connection.opened', tls: 'tls.established' } as const

/** Spans of first attempts that failed, by delivery, for the links of retries that the same process makes. */
const MAX_FAILED_FIRST = 10_000
const failedFirst = new LRUCache<string, SpanContext>({ max: MAX_FAILED_FIRST })

/** The key by which SDK and instrumentations know that nothing is to be recorded, or added to a request. */
const UNTRACED = ROOT_CONTEXT.setValue(
  createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING'),
  true,
)

/**
 * Runs `post` in a CLIENT span, below the span of the event where its envelope names one. A retry has a link to the first
 * attempt, where this process made it, else to the span of the event. `post` reports the phases of a new connection. No
 * instrumentation of the process sees the POST: it would add headers to it.
 */
export async function traceAttempt<R extends TracedResult>(
  { organisationId, deliveryId, number }: TracedAttempt,
  claim: TracedClaim,
  post: (onPhase?: (phase: keyof typeof PHASE_EVENTS) => void) => Promise<R>,
): Promise<R> {
  const tracer = findTracer()
  if (tracer === null) return post()
  const { webhookId, eventKey, traceId, body } = claim
  const { spanId = '' } = JSON.parse(body.toString()) as { spanId?: string }
  const event = remoteSpan({ traceId, spanId, isSampled: true })
  const linked = number === 1 ? null : (failedFirst.get(deliveryId) ?? event)
  const attributes = {
    ...requestAttributes(claim.url),
    ...(number === 1 ? {} : { 'http.request.resend_count': number - 1 }),
    'posthorn.organisation.id': organisationId,
    'posthorn.webhook.id': webhookId,
    'posthorn.delivery.id': deliveryId,
    'posthorn.event.key': eventKey,
    'posthorn.event.trace_id': traceId,
    'posthorn.attempt.number': number,
  }
  const links = linked === null ? [] : [{ context: linked }]
  const span = tracer.startSpan('POST', { kind: SpanKind.CLIENT, attributes, links }, below(event))
  try {
    const result = await contexts.with(UNTRACED, () => post((phase) => span.addEvent(PHASE_EVENTS[phase])))
    span.setAttributes(resultAttributes(result))
    if (result.succeeded) return result
    span.setStatus({ code: SpanStatusCode.ERROR })
    if (number === 1) failedFirst.set(deliveryId, span.spanContext())
    return result
  } catch (error) {
    span.setAttributes({ 'posthorn.attempt.outcome': 'cut_off', 'error.type': 'cut_off' })
    span.setStatus({ code: SpanStatusCode.ERROR })
    throw error
  } finally {
    span.end()
  }
}

/** The path of a URL can be its credential, so it is shortened. */
function requestAttributes(url: string): Attributes {
  const { hostname, port, protocol } = new URL(url)
  const usualPort = protocol === 'https:' ? 443 : 80
  return {
    'http.request.method': 'POST',
    'url.full': shortenUrl(url),
    'server.address': hostname,
    'server.port': port === '' ? usualPort : Number(port),
    'network.protocol.version': '1.1',
  }
}

function resultAttributes({ succeeded, failureCode, statusCode, isInconclusive }: TracedResult): Attributes {
  const outcome = succeeded ? 'succeeded' : 'failed'
  return {
    ...(statusCode === null ? {} : { 'http.response.status_code': statusCode }),
    ...(failureCode === null ? {} : { 'error.type': String(statusCode ?? failureCode) }),
    'posthorn.attempt.outcome': isInconclusive ? 'inconclusive' : outcome,
  }
}

function remoteSpan(ids: TraceContext | null): SpanContext | null {
  if (ids === null) return null
  const { traceId, spanId, isSampled } = ids
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  const span = { traceId, spanId, traceFlags, isRemote: true }
  return isSpanContextValid(span) ? span : null
}

function below(parent: SpanContext | null): typeof ROOT_CONTEXT {
  return parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)
}

/** What the API returns: its wrapper around the provider of the SDK, if there is one, or that provider itself. */
type Provider = TracerProvider & {
  getDelegate?: () => Provider
  getDelegateTracer?: (name: string) => Tracer | undefined
  forceFlush?: () => Promise<void>
}

/** Returns the tracer of the SDK; null without one. */
function findTracer(): Tracer | null {
  const provider: Provider = trace.getTracerProvider()
  if (provider.getDelegateTracer === undefined) return provider.getTracer(SYSTEM)
  return provider.getDelegateTracer(SYSTEM) ?? null
}

/** A collector that takes longer does not hold the end of the process up. */
const FLUSH_TIMEOUT_MS = 2_000

/** Lets the SDK export the last spans, for at most FLUSH_TIMEOUT_MS. */
export async function flushSpans(): Promise<void> {
  const provider: Provider = trace.getTracerProvider()
  const sdk = provider.getDelegate?.() ?? provider
  await Promise.race([sdk.forceFlush?.(), delay(FLUSH_TIMEOUT_MS, undefined, { ref: false })])
}

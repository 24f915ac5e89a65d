import { seconds, type Define } from './define.ts'

type LimitName = 'management' | 'publish' | 'validation' | 'authentication' | 'open'

/** What was refused: signing a browser in, or any other request. */
type RefusedPurpose = 'sign_in' | 'request'
type RefusalReason =
  'missing' | 'malformed' | 'short' | 'unknown' | 'session' | 'ticket' | 'operator' | 'portal_link'

/** `route` is the `operationId` of a route, or a word for what is none. */
type AnsweredRequest = { route: string; method: string; status: number; durationMs: number }

export type RequestMetrics = {
  requestAnswered(request: AnsweredRequest): void
  requestLimited(limit: LimitName): void
  /** Or a request of it: there are as many connections as there may be. */
  connectionRefused(): void
  authRefused(purpose: RefusedPurpose, reason: RefusalReason): void
  traceparentIgnored(): void
}

const LIMITS: readonly LimitName[] = ['management', 'publish', 'validation', 'authentication', 'open']
const PURPOSES: readonly RefusedPurpose[] = ['sign_in', 'request']
const REASONS: readonly RefusalReason[] = [
  'missing',
  'malformed',
  'short',
  'unknown',
  'session',
  'ticket',
  'operator',
  'portal_link',
]

/** In seconds. */
const ANSWER_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function createRequestMetrics(define: Define): RequestMetrics {
  const requests = define.counter(
    'http_requests_total',
    'Requests answered, by operationId of the route or none; status is 2xx, 4xx or 5xx',
    ['route', 'method', 'status'],
  )
  const durations = define.histogram(
    'http_request_duration_seconds',
    'How long it took until an answer was ready',
    ANSWER_BUCKETS,
    ['route'],
  )
  const limited = define.counter(
    'rate_limited_total',
    'Requests answered 429: management, publish, validation, authentication, open',
    ['limit'],
  )
  const refused = define.counter(
    'http_connections_refused_total',
    'Connections refused, or answered 503, because too many were open',
  )
  for (const limit of LIMITS) limited.inc({ limit }, 0)
  const authRefused = define.counter(
    'auth_refused_total',
    'Keys, sessions, tickets and portal links refused, at sign_in or another request; reasons as of auth.refused in the log',
    ['purpose', 'reason'],
  )
  for (const purpose of PURPOSES) for (const reason of REASONS) authRefused.inc({ purpose, reason }, 0)

  const traceparentsIgnored = define.counter(
    'traceparents_ignored_total',
    'Malformed traceparent headers, which are ignored',
  )

  return {
    requestAnswered({ route, method, status, durationMs }) {
      requests.inc({ route, method, status: `${Math.floor(status / 100)}xx` })
      durations.observe({ route }, seconds(durationMs))
    },
    requestLimited: (limit) => limited.inc({ limit }),
    connectionRefused: () => refused.inc(),
    authRefused: (purpose, reason) => authRefused.inc({ purpose, reason }),
    traceparentIgnored: () => traceparentsIgnored.inc(),
  }
}

/** `exception`: ends the process. `rejection`: an unhandled promise rejection. */
type UnexpectedErrorKind = 'exception' | 'rejection'

export type ProcessMetrics = { unexpectedError(kind: UnexpectedErrorKind): void }

const KINDS: readonly UnexpectedErrorKind[] = ['exception', 'rejection']

export function createProcessMetrics(define: Define): ProcessMetrics {
  const errors = define.counter(
    'unexpected_errors_total',
    'Errors that no part of the process caught: exception (the process ends), rejection',
    ['kind'],
  )
  for (const kind of KINDS) errors.inc({ kind }, 0)
  return { unexpectedError: (kind) => errors.inc({ kind }) }
}

/** Why a stream came to its end (`src/stream/client-stream.ts`). */
type StreamEnd = 'client' | 'slow' | 'rights' | 'stopped' | 'regressed' | 'fault'

export type StreamMetrics = {
  streamOpened(): void
  /** One event was given to one stream. */
  streamSent(): void
  streamEnded(reason: StreamEnd): void
}

const ENDS: readonly StreamEnd[] = ['client', 'slow', 'rights', 'stopped', 'regressed', 'fault']

export function createStreamMetrics(define: Define): StreamMetrics {
  const open = define.gauge('streams_open', 'Event streams that are open')
  const sent = define.counter('stream_events_sent_total', 'Events given to streams, once for each stream')
  const ended = define.counter(
    'streams_ended_total',
    'Event streams that ended: client, slow, rights, stopped, regressed (another database), fault',
    ['reason'],
  )
  for (const reason of ENDS) ended.inc({ reason }, 0)

  return {
    streamOpened: () => open.inc(),
    streamSent: () => sent.inc(),
    streamEnded(reason) {
      open.dec()
      ended.inc({ reason })
    },
  }
}

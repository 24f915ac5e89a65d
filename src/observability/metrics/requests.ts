import { seconds, type Define } from './define.ts'

const LIMITS = ['management', 'publish', 'validation', 'authentication', 'open'] as const

export type LimitName = (typeof LIMITS)[number]

/** What was refused: signing a browser in, or any other request. */
const PURPOSES = ['sign_in', 'request'] as const

const REASONS = [
  'missing',
  'malformed',
  'short',
  'unknown',
  'session',
  'ticket',
  'operator',
  'portal_link',
] as const

/**
 * Why a credential was refused, for the operator only: the answer never contains it. `unknown`: also a key that is
 * revoked or expired. `short`: a key of the demo organisation's length, where these are not valid.
 */
export type RefusalReason = (typeof REASONS)[number]

/** `route` is the `operationId` of a route, or a word for what is none. */
type AnsweredRequest = { route: string; method: string; status: number; durationMs: number }

/** In seconds. */
const ANSWER_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function createRequestMetrics(define: Define) {
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
    requestAnswered({ route, method, status, durationMs }: AnsweredRequest): void {
      requests.inc({ route, method, status: `${Math.floor(status / 100)}xx` })
      durations.observe({ route }, seconds(durationMs))
    },
    requestLimited: (limit: LimitName) => limited.inc({ limit }),
    /** Or a request of it: there are as many connections as there may be. */
    connectionRefused: () => refused.inc(),
    authRefused: (purpose: (typeof PURPOSES)[number], reason: RefusalReason) =>
      authRefused.inc({ purpose, reason }),
    traceparentIgnored: () => traceparentsIgnored.inc(),
  }
}

/** `exception`: ends the process. `rejection`: an unhandled promise rejection. */
const KINDS = ['exception', 'rejection'] as const

export function createProcessMetrics(define: Define) {
  const errors = define.counter(
    'unexpected_errors_total',
    'Errors that no part of the process caught: exception (the process ends), rejection',
    ['kind'],
  )
  for (const kind of KINDS) errors.inc({ kind }, 0)
  return { unexpectedError: (kind: (typeof KINDS)[number]) => errors.inc({ kind }) }
}

/**
 * Why a stream ended: the client disconnected, or did not read; its key or its rights changed; the process stops; the
 * database was replaced by an older one; a fault of ours.
 */
const STREAM_ENDS = ['client', 'slow', 'rights', 'stopped', 'regressed', 'fault'] as const

export type StreamEnd = (typeof STREAM_ENDS)[number]

export function createStreamMetrics(define: Define) {
  const open = define.gauge('streams_open', 'Event streams that are open')
  const sent = define.counter('stream_events_sent_total', 'Events given to streams, once for each stream')
  const ended = define.counter(
    'streams_ended_total',
    'Event streams that ended: client, slow, rights, stopped, regressed (another database), fault',
    ['reason'],
  )
  for (const reason of STREAM_ENDS) ended.inc({ reason }, 0)

  return {
    streamOpened: () => open.inc(),
    /** One event was given to one stream. */
    streamSent: () => sent.inc(),
    streamEnded(reason: StreamEnd): void {
      open.dec()
      ended.inc({ reason })
    },
  }
}

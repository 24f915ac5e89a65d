import { CONFLICTS } from './conflict-problems.ts'

/** One kind of refusal: the HTTP status, the title of the problem document, what causes it and what the caller does. */
type ProblemKind = { status: number; title: string; cause: string; cure: string }

const UNREADABLE = { status: 400, title: 'The request cannot be read' } as const

/**
 * Every problem code that the API answers with, ordered by status. The code is stable; `cause` and `cure` are the text
 * of docs/api.md.
 */
export const PROBLEMS = {
  malformed_path: {
    ...UNREADABLE,
    cause: 'The target of the request line is not a URL.',
    cure: 'Send a valid path, with reserved characters percent-encoded.',
  },
  malformed_request: {
    ...UNREADABLE,
    cause:
      'What arrived is not one HTTP/1.1 request: it has an unknown method, no `Host`, two lengths or the like.',
    cure: 'Send what RFC 9112 describes; the connection is closed after this answer.',
  },
  repeated_host: {
    ...UNREADABLE,
    cause: 'The request has more than one `Host` header.',
    cure: 'Send one, with the name of the service.',
  },
  malformed_json: {
    ...UNREADABLE,
    cause: 'The body is not valid JSON, or not valid UTF-8.',
    cure: 'Send JSON in UTF-8.',
  },
  too_deep: {
    ...UNREADABLE,
    cause: 'The JSON of the body has more than 64 levels.',
    cure: 'Send a flatter payload.',
  },
  incomplete_body: {
    ...UNREADABLE,
    cause: 'The body ended early, or could not be unpacked.',
    cure: 'Send the whole body, and a `Content-Encoding` that matches it.',
  },
  invalid_cursor: {
    ...UNREADABLE,
    cause: 'The parameter `cursor` was not made by this API.',
    cure: 'Send the `nextCursor` of the page before unchanged, or start again without a cursor.',
  },
  invalid_idempotency_key: {
    ...UNREADABLE,
    cause: 'The header `Idempotency-Key` is malformed, or is sent more than once.',
    cure: 'Send it once, with 1 to 255 of the characters `A-Z a-z 0-9 . _ : -`.',
  },
  unauthenticated: {
    status: 401,
    title: 'A valid API key is needed',
    cause:
      'The API key is missing, malformed, unknown, expired or revoked, or the session or ticket has ended.',
    cure: 'Send a valid key in one `x-api-key` header, or in one `x-operator-key` header to the operator API.',
  },
  invalid_portal_link: {
    status: 401,
    title: 'The link is no longer valid',
    cause: 'The portal link is unknown, has expired, or was already used.',
    cure: 'Create another link; each opens one session.',
  },
  missing_permission: {
    status: 403,
    title: 'Permission missing',
    cause: "The key's member lacks the permissions that `missingPermissions` names.",
    cure: 'Use the key of another member, or have the operator grant the permissions.',
  },
  needs_api_key: {
    status: 403,
    title: 'Needs an API key',
    cause: 'The session was opened by a portal link and has no API key, which the event stream needs.',
    cure: 'Send an API key, or sign in with one.',
  },
  missing_scope: {
    status: 403,
    title: 'Scope missing',
    cause: 'The operator key lacks the scope that `detail` names.',
    cure: 'Use another operator key, or add the scope in `POSTHORN_OPERATOR_KEYS`.',
  },
  needs_tls: {
    status: 403,
    title: 'Not over plain HTTP',
    cause: 'A browser signs in over plain HTTP from another machine.',
    cure: 'Open the page over https. The operator sets `POSTHORN_PUBLIC_URL` or `TRUSTED_PROXIES`.',
  },
  cross_site: {
    status: 403,
    title: 'Not from this site',
    cause: 'A request with a session cookie or a portal link comes from a page of another origin.',
    cure: 'Send requests from the pages of this service, or with an API key instead of a session.',
  },
  not_found: {
    status: 404,
    title: 'Not found',
    cause: 'The route or the resource does not exist, or belongs to another organisation.',
    cure: 'Check the path, the ids, and that the key belongs to the organisation in the path.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    cause: 'The path exists, but does not answer this method.',
    cure: 'Use a method that the header `Allow` names.',
  },
  request_timeout: {
    status: 408,
    title: 'The request took too long',
    cause: 'The head of the request was not complete after 10 seconds, or all of it after 30.',
    cure: 'Send it again in one go; the connection is closed after this answer.',
  },
  ...CONFLICTS,
  payload_erased: {
    status: 410,
    title: 'Payload erased',
    cause: 'The payload of the event is erased, so there is nothing to send.',
    cure: 'None: it is gone for good. To send the data again, publish another event.',
  },
  body_too_large: {
    status: 413,
    title: 'Body too large',
    cause: 'The body, unpacked, is larger than the route allows.',
    cure: 'Send less: references instead of contents.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    cause: 'The body is not announced as JSON in UTF-8, or is packed in an unknown way.',
    cure: 'Send `Content-Type: application/json`, plain or packed with gzip, deflate or br.',
  },
  wrong_host: {
    status: 421,
    title: 'Not the name of this service',
    cause: 'A page, or a request with a session, came under another host than that of `POSTHORN_PUBLIC_URL`.',
    cure: 'Open the page at its own address. A proxy has to pass on `Host`, or `X-Forwarded-Host` as a trusted one.',
  },
  invalid_fields: {
    status: 422,
    title: 'Fields are not valid',
    cause:
      'At least one field or query parameter is not valid; `errors` names each, 100 at most, and of a value with very many fields the first only. Nothing was done.',
    cure: 'Correct the fields and send the request again.',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'Idempotency key reused',
    cause: 'The `Idempotency-Key` was sent with another body within 24 hours.',
    cure: 'Use one key for one request: a new key for a new body.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    cause:
      'The key or the address has used up its requests for now, or the member its time for checking payloads.',
    cure: 'Wait for the seconds that `Retry-After` gives, then try again.',
  },
  too_many_streams: {
    status: 429,
    title: 'Too many streams',
    cause: 'The organisation has 1,000 event streams open in this process.',
    cure: 'Close a stream, or wait until one has ended.',
  },
  headers_too_large: {
    status: 431,
    title: 'Headers too large',
    cause: 'The headers of the request have more than 16 KiB together.',
    cure: 'Send fewer or shorter ones; the connection is closed after this answer.',
  },
  internal_error: {
    status: 500,
    title: 'Internal error',
    cause: 'A fault of this service.',
    cure: 'Try again. The operator finds `http.failed` in the log, under the `x-request-id` of the answer.',
  },
  unavailable: {
    status: 503,
    title: 'Temporarily unavailable',
    cause: 'The database did not answer in time. The request may or may not have been carried out.',
    cure: 'Try again after `Retry-After`, with the same `Idempotency-Key`.',
  },
  overloaded: {
    status: 503,
    title: 'Overloaded',
    cause:
      '`PUBLISH_BACKLOG_LIMIT` deliveries wait for their first attempt, or too many are being published, or too many large payloads wait for their check, or too many bodies are being read. Nothing was done.',
    cure: 'Try again after `Retry-After`.',
  },
  no_stream_now: {
    status: 503,
    title: 'No stream can be opened for now',
    cause: 'The process has 2,000 streams open, is stopping, or waits for the database.',
    cure: 'Try again after `Retry-After`; another process may answer.',
  },
  too_many_connections: {
    status: 503,
    title: 'Too many connections',
    cause: 'The process has 5,000 connections open, or half of them come from this address.',
    cure: 'Try again after `Retry-After`, and reuse connections.',
  },
} as const satisfies Record<string, ProblemKind>

export type ProblemCode = keyof typeof PROBLEMS

/** The codes that are answered with one status. */
export type ProblemCodeOf<Status extends number> = {
  [Code in ProblemCode]: (typeof PROBLEMS)[Code]['status'] extends Status ? Code : never
}[ProblemCode]

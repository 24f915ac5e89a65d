const COMMON = { status: 400, title: 'The request cannot be read' } as const

/** The problems of requests that cannot be read (400). */
export const UNREADABLE = {
  malformed_path: {
    ...COMMON,
    cause: 'The target of the request line is not a URL.',
    cure: 'Send a valid path, with reserved characters percent-encoded.',
  },
  malformed_request: {
    ...COMMON,
    cause:
      'What arrived is not one HTTP/1.1 request: it has an unknown method, no `Host`, two lengths or the like.',
    cure: 'Send what RFC 9112 describes; the connection is closed after this answer.',
  },
  repeated_host: {
    ...COMMON,
    cause: 'The request has more than one `Host` header.',
    cure: 'Send one, with the name of the service.',
  },
  malformed_json: {
    ...COMMON,
    cause: 'The body is not valid JSON, or not valid UTF-8.',
    cure: 'Send JSON in UTF-8.',
  },
  too_deep: {
    ...COMMON,
    cause: 'The JSON of the body has more than 64 levels.',
    cure: 'Send a flatter payload.',
  },
  incomplete_body: {
    ...COMMON,
    cause: 'The body ended early, or could not be unpacked.',
    cure: 'Send the whole body, and a `Content-Encoding` that matches it.',
  },
  invalid_cursor: {
    ...COMMON,
    cause: 'The parameter `cursor` was not made by this API.',
    cure: 'Send the `nextCursor` of the page before unchanged, or start again without a cursor.',
  },
  invalid_idempotency_key: {
    ...COMMON,
    cause: 'The header `Idempotency-Key` is malformed, or is sent more than once.',
    cure: 'Send it once, with 1 to 255 of the characters `A-Z a-z 0-9 . _ : -`.',
  },
} as const

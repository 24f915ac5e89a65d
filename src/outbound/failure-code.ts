import { STATUS_CODES } from 'node:http'
import { errors as undiciErrors } from 'undici'
import type { FailureCode } from '../domain/attempt-outcome.ts'

/**
 * Why nothing, or nothing usable, came back from an endpoint, found by our own checks and timers.
 * `message` is shown to the customer: it names no address, so it cannot be used to map an internal network.
 */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  readonly code: FailureCode

  constructor(code: FailureCode, message: string) {
    super(message)
    this.code = code
  }
}

/** The endpoint is somewhere Posthorn does not send to. */
export function blockedTarget(): OutboundError {
  return new OutboundError('blocked_target', "The endpoint's host is not on the public internet.")
}

/** `15 seconds`, `1 second`, `0.5 seconds`. */
export function formatSeconds(durationMs: number): string {
  const seconds = durationMs / 1000
  return seconds === 1 ? '1 second' : `${seconds} seconds`
}

/** A failed attempt as a customer sees it: a code of the closed set, and a sentence to act on. */
export type Failure = { failureCode: FailureCode; error: string }

const RESET: Failure = {
  failureCode: 'connection_reset',
  error: 'The endpoint closed the connection before it had answered.',
}
const CONNECT_TIMEOUT: Failure = {
  failureCode: 'connect_timeout',
  error: 'No connection could be set up in time.',
}
const NO_ROUTE: Failure = { failureCode: 'network_error', error: 'The network has no route to the endpoint.' }
/** A limit of this machine was reached: file descriptors, or memory for sockets. */
const NO_MORE_CONNECTIONS: Failure = {
  failureCode: 'network_error',
  error: 'The service could not open another connection.',
}
const NOT_HTTP: Failure = { failureCode: 'invalid_response', error: 'The answer is not valid HTTP/1.1.' }

/** Error codes of Node (system calls) and undici (`UND_ERR_*`). */
const FAILURES: Readonly<Record<string, Failure>> = {
  ECONNREFUSED: { failureCode: 'connect_refused', error: 'The connection was refused.' },
  ECONNRESET: RESET,
  EPIPE: RESET,
  ECONNABORTED: RESET,
  UND_ERR_SOCKET: RESET,
  ETIMEDOUT: CONNECT_TIMEOUT,
  EHOSTUNREACH: NO_ROUTE,
  ENETUNREACH: NO_ROUTE,
  ENETDOWN: NO_ROUTE,
  EADDRNOTAVAIL: NO_ROUTE,
  EMFILE: NO_MORE_CONNECTIONS,
  ENFILE: NO_MORE_CONNECTIONS,
  ENOBUFS: NO_MORE_CONNECTIONS,
  ENOMEM: NO_MORE_CONNECTIONS,
  UND_ERR_HEADERS_OVERFLOW: {
    failureCode: 'invalid_response',
    error: 'The headers of the answer are larger than 16 KiB.',
  },
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: NOT_HTTP,
  // undici asserts that a status is at least 100, on bytes that a stranger sent.
  ERR_ASSERTION: NOT_HTTP,
}

/** Codes to report first when the addresses of a host failed in different ways. */
const CODES_BY_PRIORITY: readonly FailureCode[] = ['connect_refused', 'connection_reset', 'connect_timeout']

/** The failure that a status outside 2xx is. Our own words for the status, not the endpoint's. */
export function describeStatus(status: number): Failure {
  const answered = `The endpoint answered ${[status, STATUS_CODES[status] ?? ''].join(' ').trim()}.`
  const isRedirect = status >= 300 && status <= 399 && status !== 304
  const error = isRedirect ? `${answered} Redirects are not followed.` : answered
  return { failureCode: 'http_status', error }
}

/** Describes the error of an exchange as its failure. Never shows the text of a library: it contains addresses. */
export function describeError(thrown: unknown): Failure {
  if (thrown instanceof OutboundError) return { failureCode: thrown.code, error: thrown.message }
  if (thrown instanceof AggregateError) return describeAll(thrown.errors)
  const code =
    thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : ''
  if (thrown instanceof Error && isRefusedStatus(code, thrown)) {
    return {
      failureCode: 'invalid_response',
      error: 'The endpoint answered with a 1xx status that was not asked for.',
    }
  }
  if (thrown instanceof undiciErrors.HTTPParserError) return NOT_HTTP
  const tlsError = describeTlsError(code)
  if (tlsError !== null) return { failureCode: 'tls_error', error: tlsError }
  return FAILURES[code] ?? { failureCode: 'network_error', error: 'The connection to the endpoint failed.' }
}

function describeAll(errors: readonly unknown[]): Failure {
  const failures = errors.map(describeError)
  for (const code of CODES_BY_PRIORITY) {
    const found = failures.find((failure) => failure.failureCode === code)
    if (found !== undefined) return found
  }
  return failures[0] ?? NO_ROUTE
}

/**
 * Returns whether undici refused an unrequested 100 or 101: it has the code of a closed socket, but its own message.
 */
function isRefusedStatus(code: string, error: Error): boolean {
  return code === 'UND_ERR_SOCKET' && (error.message === 'bad response' || error.message === 'bad upgrade')
}

const UNTRUSTED =
  "The endpoint's certificate does not lead to a trusted authority; an intermediate certificate may be missing."
const OLD_TLS = 'The endpoint does not offer TLS 1.2 or newer.'
const NO_TLS = 'The endpoint does not speak TLS on this port.'
const WANTS_CERTIFICATE = 'The endpoint asks for a client certificate, which the service does not have.'

/** Codes of certificate checks and of OpenSSL, in words a receiver can act on. */
const SENTENCES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "The endpoint's certificate has expired.",
  CERT_NOT_YET_VALID: "The endpoint's certificate is not valid yet.",
  CERT_REVOKED: "The endpoint's certificate was revoked.",
  DEPTH_ZERO_SELF_SIGNED_CERT: "The endpoint's certificate is self-signed.",
  SELF_SIGNED_CERT_IN_CHAIN:
    "The chain of the endpoint's certificate ends in a self-signed one that is not trusted.",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: "The endpoint's certificate is for another host name.",
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  ERR_SSL_UNSUPPORTED_PROTOCOL: OLD_TLS,
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: OLD_TLS,
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'The endpoint does not speak HTTP/1.1.',
  ERR_SSL_TLSV1_UNRECOGNIZED_NAME: 'The endpoint does not know its own host name.',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: WANTS_CERTIFICATE,
  // So Java says it; there is no certificate of ours that could be bad.
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: WANTS_CERTIFICATE,
}

/** Other results of the certificate check (X509_V_ERR_* of OpenSSL, without that prefix). */
const OTHER_CERTIFICATE_CODE =
  /^(CERT_|CRL_|UNABLE_TO_|ERROR_IN_CERT_|ERROR_IN_CRL_|INVALID_(CA|PURPOSE)$|PATH_LENGTH_EXCEEDED$|HOSTNAME_MISMATCH$|(CA|EE)_(KEY|MD)_)/

/**
 * Returns whether TLS failed after the handshake: the endpoint may have read the request. With TLS 1.3 it asks for a
 * certificate of ours only then, and has read nothing.
 */
export function isBrokenTls(error: Error): boolean {
  const code = 'code' in error ? String(error.code) : ''
  return code.startsWith('ERR_SSL_') && SENTENCES[code] !== WANTS_CERTIFICATE
}

/** A sentence for an error of the TLS handshake, by its code; null when it is no such error. */
function describeTlsError(code: string): string | null {
  const sentence = SENTENCES[code]
  if (sentence !== undefined) return sentence
  if (OTHER_CERTIFICATE_CODE.test(code)) return "The endpoint's certificate is not valid."
  if (/^(ERR_SSL_|ERR_TLS_|EPROTO$)/.test(code))
    return 'No secure connection to the endpoint could be set up.'
  return null
}

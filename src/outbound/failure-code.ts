import { STATUS_CODES } from 'node:http'
import { errors as undiciErrors } from 'undici'
import type { FailureCode } from '../domain/attempt-outcome.ts'
import { OutboundError } from './outbound-error.ts'
import { describeTlsError } from './tls-failure.ts'

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
  error: 'Posthorn could not open another connection.',
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

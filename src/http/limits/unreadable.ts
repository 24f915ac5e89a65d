import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ProblemError } from '../../problem-error.ts'

/** How long a client may take to read the answer. */
const CLOSE_AFTER_MS = 5_000

const refused = new WeakSet<Socket>()

/** Returns the headers of a problem document that the app did not write. */
export function problemHeaders(body: string): Record<string, string | number> {
  return {
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  }
}

/**
 * Ends a connection on which Node.js could not parse what arrived, or not in time; `code` is that of its error. It is
 * answered with a problem document unless an answer written now would be taken for that of another request.
 *
 * @param next what the answer belongs to: a head or the body of a request; null where it belongs to nothing
 */
export function refuseUnreadable(
  code: string | undefined,
  socket: Socket,
  next: 'head' | 'body' | null,
): void {
  // The rest of what is sent is read and dropped: closing with bytes unread would take the answer with it.
  if (refused.has(socket)) return
  if (next === null || !socket.writable || code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  refused.add(socket)
  socket.end(serialise(problemOf(code, next)))
  setTimeout(() => socket.destroy(), CLOSE_AFTER_MS).unref()
}

function problemOf(code: string | undefined, next: 'head' | 'body'): ProblemError {
  if (code === 'HPE_HEADER_OVERFLOW') return new ProblemError('headers_too_large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ProblemError('request_timeout')
  return new ProblemError(next === 'body' ? 'incomplete_body' : 'malformed_request')
}

function serialise(error: ProblemError): string {
  const { status } = error.problem
  const body = error.document()
  const headers = { ...problemHeaders(body), date: new Date().toUTCString(), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n')
}

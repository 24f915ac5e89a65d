import type { FailureCode } from '../../../src/domain/attempt-outcome.ts'
import { answer, answerAndHang, answerAndReset, flood, OK, type Behaviour } from './receivers.ts'

/**
 * What an endpoint does once it was asked, and what becomes of the attempt. `failureCode` null: a confirmation.
 * `bodyBytes`: of the request, which such an `eager` endpoint answers before it has come.
 */
export type Misbehaviour = {
  title: string
  behave: Behaviour
  failureCode: FailureCode | null
  statusCode: number | null
  eagerAtBytes?: number
}

const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
const EARLY_HINTS = 'HTTP/1.1 103 Early Hints\r\n\r\n'
const H2_SETTINGS = Buffer.from('000000040000000000', 'hex')

function row(
  title: string,
  behave: Behaviour,
  failureCode: FailureCode | null,
  statusCode: number | null,
): Misbehaviour {
  return { title, behave, failureCode, statusCode }
}

const reset = (title: string, behave: Behaviour) => row(title, behave, 'connection_reset', null)
const invalid = (title: string, raw: string | Buffer) => row(title, answer(raw), 'invalid_response', null)
const confirmed = (title: string, behave: Behaviour, status = 200) => row(title, behave, null, status)
const early = (title: string, raw: string, code: FailureCode | null, status: number): Misbehaviour => {
  return { ...row(title, answer(raw), code, status), eagerAtBytes: 5_000_000 }
}

const NO_ANSWER = [
  reset('closes without an answer', answer('')),
  reset('resets without an answer', answerAndReset('')),
  reset('closes in the middle of the status line', answer('HTTP/1.1 20')),
  reset('closes in the middle of the headers', answer('HTTP/1.1 200 OK\r\nx: y')),
  reset('resets in the middle of the headers', answerAndReset('HTTP/1.1 200 OK\r\nx: y')),
  reset('closes after early hints', answer(EARLY_HINTS)),
]

const INTERIM = [
  invalid('answers 100, which was not asked for, and then 200', `HTTP/1.1 100 Continue\r\n\r\n${OK}`),
  invalid('answers 101', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  confirmed('answers 102 and then 200', answer(`HTTP/1.1 102 Processing\r\n\r\n${OK}`)),
  confirmed('answers 103 and then 200', answer(`HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${OK}`)),
  confirmed('answers 103 a hundred thousand times and then 200', answer(EARLY_HINTS.repeat(100_000) + OK)),
  row('pours out 103 without an end', flood('', EARLY_HINTS), 'invalid_response', null),
  row('pours out a status line without an end', flood('HTTP/1.1 200 ', 'x'), 'invalid_response', null),
  row('pours out headers without an end', flood('HTTP/1.1 200 OK\r\n', 'a: b\r\n'), 'invalid_response', null),
]

const NOT_HTTP = [
  invalid('sends garbage', 'hello there\r\n\r\n'),
  invalid('ends its lines with LF only', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'),
  invalid('announces a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n'),
  invalid('announces two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok'),
  invalid(
    'announces a length and chunks',
    'HTTP/1.1 200 OK\r\ncontent-length: 7\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  ),
  invalid('sends a NUL in a header', 'HTTP/1.1 200 OK\r\nx: a\u0000b\r\ncontent-length: 0\r\n\r\n'),
  invalid('sends a header without a colon', 'HTTP/1.1 200 OK\r\nnonsense\r\ncontent-length: 0\r\n\r\n'),
  invalid('sends headers above 16 KiB', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(17_000)}\r\n\r\n`),
  invalid('speaks HTTP/2', H2_SETTINGS),
  ...['20', '2000', '099', '600', '999', '-20', '0x2'].map((status) =>
    invalid(`answers status ${status}`, `HTTP/1.1 ${status} Odd\r\ncontent-length: 0\r\n\r\n`),
  ),
]

const BROKEN_BODY = [
  confirmed('answers 200 and resets', answerAndReset('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc')),
  confirmed('answers 200 and closes short', answer('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc')),
  confirmed('answers 200 without the last chunk', answer(`${CHUNKED}3\r\nabc\r\n`)),
  confirmed('answers 200 with a bad chunk', answer(`${CHUNKED}3\r\nabc\r\nzz\r\n`)),
  confirmed('answers 200 with endless trailers', flood(`${CHUNKED}0\r\n`, 'a: b\r\n')),
  confirmed('answers 200 with an endless chunk extension', flood(`${CHUNKED}3;`, 'x')),
  confirmed('answers 200 with an endless body', flood('HTTP/1.1 200 OK\r\n\r\n', 'x')),
  confirmed(
    'answers 204 with a body',
    answer('HTTP/1.1 204 No Content\r\ncontent-length: 3\r\n\r\nabc'),
    204,
  ),
  confirmed('answers 205 without a length and stalls', answerAndHang('HTTP/1.1 205 Reset\r\n\r\n'), 205),
  confirmed('answers 202 and stalls', answerAndHang('HTTP/1.1 202 OK\r\ncontent-length: 9\r\n\r\nabc'), 202),
  row(
    'answers 500 and stalls',
    answerAndHang('HTTP/1.1 500 Oops\r\ncontent-length: 9\r\n\r\nabc'),
    'http_status',
    500,
  ),
]

const UNUSUAL = [
  confirmed('answers with HTTP/1.0', answer('HTTP/1.0 200 OK\r\n\r\nok')),
  row('refuses with HTTP/1.0', answer('HTTP/1.0 500 Oops\r\n\r\nno'), 'http_status', 500),
  confirmed('gives no reason', answer('HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n')),
  confirmed('answers twice', answer(`${OK}HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n`)),
  row('answers 304', answer('HTTP/1.1 304 Not Modified\r\n\r\n'), 'http_status', 304),
  early('answers 413 and closes during the upload', 'HTTP/1.1 413 No\r\n\r\n', 'http_status', 413),
  early('answers 200 and closes during the upload', 'HTTP/1.1 200 OK\r\n\r\n', null, 200),
]

/**
 * Every row of what was measured of receivers (security.md, section 2.2), except TLS and what never ends
 * (`deadline.test.ts`), and some more.
 */
export const MISBEHAVIOURS: readonly Misbehaviour[] = [
  ...NO_ANSWER,
  ...INTERIM,
  ...NOT_HTTP,
  ...BROKEN_BODY,
  ...UNUSUAL,
]

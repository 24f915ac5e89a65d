import { randomUUID } from 'node:crypto'
import { type Readable, Transform } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { constants } from 'node:zlib'
import type { Context, Middleware } from 'koa'
import compress from 'koa-compress'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { isDatabaseUnavailable } from '../db/connection/connection-errors.ts'
import { ProblemError, unavailable } from '../problem-error.ts'
import type { Logger } from '../observability/logger.ts'
import type { Metrics } from '../observability/metrics.ts'
import { pathOf } from './middleware/requested-host.ts'
import type { LoggedTrace, Reply } from './route.ts'

/** Writes the reply of a route to the response. Throws what opening a stream throws, and logs what cuts streamed text off. */
export async function answer(ctx: Context, reply: Reply, logger: Pick<Logger, 'warn'>): Promise<void> {
  if (reply.trace) ctx.state['trace'] = reply.trace
  if (reply.stream !== undefined) {
    await answerWithStream(ctx, reply.stream)
    return
  }
  ctx.status = reply.status
  if (reply.text !== undefined) {
    const { type, stream } = reply.text
    stream.once('error', (error: NodeJS.ErrnoException) => {
      const isClientGone = error.code === 'ERR_STREAM_PREMATURE_CLOSE'
      if (!isClientGone) logger.warn({ event: 'http.cut_off', path: pathOf(ctx), err: error })
    })
    ctx.set({ ...UNBUFFERED, 'content-type': type })
    ctx.body = stream
    return
  }
  ctx.set(reply.headers ?? {})
  if (reply.isSecret === true) ctx.compress = false
  if (reply.status === 204) {
    ctx.body = null
    return
  }
  ctx.body = reply.json ?? JSON.stringify(reply.body)
  ctx.type = 'application/json'
}

/** Keeps proxies from storing, compressing or buffering what comes bit by bit; compression would hold it back. */
const UNBUFFERED = { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' }

/** Opens no stream for HEAD, which gets the headers only. */
async function answerWithStream(ctx: Context, open: () => Promise<Readable>): Promise<void> {
  const stream = ctx.method === 'HEAD' ? null : await open()
  ctx.status = 200
  ctx.set({
    ...UNBUFFERED,
    'content-type': 'text/event-stream; charset=utf-8',
    // The client reconnects after a stream, and a process that stops need not wait for an idle connection.
    connection: 'close',
  })
  // Koa destroys the stream when the connection closes, and the connection when the stream is destroyed.
  if (stream !== null) ctx.body = stream
}

/**
 * Returns a function that gives what `make` makes of a catalogue, as the bytes of its JSON text: made once for a process's
 * catalogue, so that concurrent answers share them.
 */
export function bytesOfCatalogue(make: (catalogue: Catalogue) => object): (catalogue: Catalogue) => Buffer {
  const made = new WeakMap<Catalogue, Buffer>()
  return (catalogue) => {
    const bytes = made.get(catalogue) ?? Buffer.from(JSON.stringify(make(catalogue)))
    made.set(catalogue, bytes)
    return bytes
  }
}

/** Converts every error into a problem+json answer with a stable code, without internals. The only place that does. */
export function errorHandler(logger: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const refusal = toProblem(error, logger)
      ctx.status = refusal.problem.status
      ctx.set(refusal.headers)
      ctx.body = refusal.document()
      ctx.type = 'application/problem+json'
    }
  }
}

function toProblem(error: unknown, logger: Logger): ProblemError {
  if (error instanceof ProblemError) return error
  if (isDatabaseUnavailable(error)) {
    logger.warn({ event: 'http.database_unavailable', err: error })
    return unavailable()
  }
  logger.error({ event: 'http.failed', err: error })
  return new ProblemError('internal_error', {
    detail: 'This is our fault. Try again; the log has the details.',
  })
}

const USABLE_ID = /^[A-Za-z0-9-]{1,64}$/

/** Any other method is the sender's choice, and would create a series of its own. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/**
 * Logs one line per request, with an id that is also in the answer; never a body, a header or a query string. Counts and
 * times it by its route, never by its path, which contains ids.
 */
export function requestLog(logger: Logger, metrics: Metrics): Middleware<RequestState> {
  return async (ctx, next) => {
    const given = ctx.get('x-request-id')
    const requestId = USABLE_ID.test(given) ? given : randomUUID()
    ctx.set('x-request-id', requestId)
    const startedAt = performance.now()
    await next()
    const durationMs = performance.now() - startedAt
    const { method, status } = ctx
    const { operationId: route = 'none', operator, trace } = ctx.state
    metrics.requestAnswered({ route, method: METHODS.has(method) ? method : 'other', status, durationMs })
    const fields = {
      event: 'http.answered',
      requestId,
      method,
      path: pathOf(ctx),
      status,
      durationMs: Math.round(durationMs),
      // The logger leaves out what is undefined.
      operator,
      traceId: trace?.traceId,
      spanId: trace?.spanId ?? undefined,
    }
    logger.info(fields)
  }
}

/**
 * What the log shows of a request. `operationId`: of the matched route. `operator`: the name of the operator key that the
 * request came with.
 */
export type RequestState = { operationId?: string; operator?: string; trace?: LoggedTrace }

/** Answers that are compressed at once; further ones go out as they are. Libuv's four threads also look up names. */
const MAX_CONCURRENT = 2

/** An answer that fits into a packet is not worth the time. */
const MIN_BYTES = 1_400

/** 256 KiB for an answer in progress, where the default takes megabytes. */
const BROTLI = { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 18 }

/**
 * Compresses answers to GET, in one piece: they have a length, and a client that does not read holds no compressor. An
 * answer whose `compress` is false is left alone, as secrets are: the length of a compressed one could give away what it
 * has in common with what an attacker had put next to it (BREACH). So is what is streamed (`no-transform`), and answers to
 * other methods, which show new secrets. Documents and files, which are the same bytes in each answer, are compressed once.
 */
export function compression(): Middleware {
  const compressOne = compress({
    br: { params: BROTLI },
    gzip: {},
    deflate: false,
    // Node.js 20 has none.
    zstd: false,
    threshold: MIN_BYTES,
  })
  const compressed = new WeakMap<Buffer, Map<string, Buffer>>()
  let running = 0

  /** Returns whether these bytes were compressed before in the best way that the client accepts. */
  function answerAgain(ctx: Context): boolean {
    const known = Buffer.isBuffer(ctx.body) ? compressed.get(ctx.body) : undefined
    const encoding = ['br', 'gzip'].find((name) => ctx.acceptsEncodings(name) === name) ?? ''
    const bytes = known?.get(encoding)
    if (bytes === undefined) return false
    ctx.set('content-encoding', encoding)
    ctx.body = bytes
    return true
  }

  async function answerCompressed(ctx: Context): Promise<void> {
    const given: unknown = ctx.body
    await compressOne(ctx, () => Promise.resolve())
    const stream: unknown = ctx.body
    if (!(stream instanceof Transform)) return
    const bytes = await buffer(stream)
    ctx.body = bytes
    if (!Buffer.isBuffer(given)) return
    const known = compressed.get(given) ?? new Map<string, Buffer>()
    compressed.set(given, known.set(ctx.response.get('content-encoding'), bytes))
  }

  return async (ctx, next) => {
    // Also of what is not compressed this time.
    ctx.vary('Accept-Encoding')
    await next()
    if (ctx.method !== 'GET' || answerAgain(ctx) || running >= MAX_CONCURRENT) return
    running++
    try {
      await answerCompressed(ctx)
    } finally {
      running--
    }
  }
}

import { setMaxListeners } from 'node:events'
import { isSuccessStatus } from '../domain/attempt-outcome.ts'
import type { FailureCode } from '../domain/attempt-outcome.ts'
import { createAddressGuard } from './address-guard.ts'
import { createConnectionPool, type PoolLimits } from './connection-pool.ts'
import { createConnector } from './pinned-connector.ts'
import {
  exchange,
  MAX_RESPONSE_BYTES,
  type Answer,
  type ExchangeTools,
  type PostRequest,
  type Progress,
  type CapturedResponse,
} from './exchange.ts'
import { describeError, describeStatus, OutboundError, formatSeconds } from './failure-code.ts'
import type { AllowHttp } from './host-names.ts'
import { afterPauses, createPauseWatch, onAbort, raceAbort, type PauseWatch } from '../timers.ts'
import { createResolver } from './resolver.ts'

/**
 * How one POST ended. Without success, `failureCode` and `error` give the reason; `statusCode` and `response` are the
 * answer of the endpoint, as far as it was received. `durationMs` comes from a clock that is never set back.
 */
export type PostResult = {
  succeeded: boolean
  failureCode: FailureCode | null
  statusCode: number | null
  error: string | null
  startedAt: Date
  durationMs: number
  response: CapturedResponse | null
  /** This process was paused during the POST: a failure without a status is then no evidence about the endpoint. */
  isInconclusive: boolean
}

/** The part of the time of a POST that connecting may take. */
const CONNECT_TIMEOUT_MS = 5_000

export type HttpClient = {
  /**
   * One POST, never repeated and never redirected. Rejects only with the reason of an aborted `signal`, and with that of
   * `stopping` while no byte of the request has been written.
   */
  post(request: PostRequest): Promise<PostResult>
  /** Closes idle connections, and resolves when the POSTs under way have ended; none takes longer than `timeoutMs`. */
  close(): Promise<void>
}

export type HttpClientOptions = {
  allowHttp: AllowHttp
  allowedCidrs: readonly string[]
  /** Bound on the whole exchange, from DNS to the last byte of the answer that is stored. */
  timeoutMs: number
  /** Bound on DNS, TCP and TLS together; CONNECT_TIMEOUT_MS unless `timeoutMs` is less. For tests. */
  connectTimeoutMs?: number
  /** Bytes stored of an answer's body; reading stops there. MAX_RESPONSE_BYTES unless given, in tests. */
  maxResponseBytes?: number
  /** PEM certificates trusted besides the usual roots; for tests and development. */
  ca?: string
  /** Once it is aborted no POST begins any more; those that have begun go on. */
  stopping?: AbortSignal
  /** Unix ms by which attempts are dated; this machine's clock unless given. */
  nowMs?: () => number
  /** Other bounds on pooled connections than the usual ones; for tests. */
  poolLimits?: Partial<PoolLimits>
}

/**
 * Builds the client for POSTs to customers. It reads no proxy settings: the guard could not check the addresses to which a
 * proxy connects.
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const guard = createAddressGuard(options)
  const { timeoutMs, maxResponseBytes = MAX_RESPONSE_BYTES, nowMs = () => Date.now() } = options
  const { connectTimeoutMs = Math.min(CONNECT_TIMEOUT_MS, timeoutMs) } = options
  const resolver = createResolver({ guard })
  const connect = createConnector({ ...options, guard, resolver, connectTimeoutMs })
  const pool = createConnectionPool(options.poolLimits)
  const pauses = createPauseWatch()
  const tools = { ...options, connect, pool, pauses, nowMs, maxResponseBytes }
  let underWay = 0
  const whenIdle: (() => void)[] = []

  async function post(request: PostRequest): Promise<PostResult> {
    underWay++
    try {
      return await postOnce(request, tools)
    } finally {
      if (--underWay === 0) for (const resolve of whenIdle.splice(0)) resolve()
    }
  }

  async function close(): Promise<void> {
    pool.close()
    pauses.stop()
    if (underWay > 0) await new Promise<void>((resolve) => whenIdle.push(resolve))
  }

  return { post, close }
}

type PostTools = ExchangeTools & { pauses: PauseWatch; nowMs: () => number } & Pick<
    HttpClientOptions,
    'timeoutMs' | 'stopping'
  >

async function postOnce(request: PostRequest, tools: PostTools): Promise<PostResult> {
  const { timeoutMs, stopping, pauses } = tools
  request.signal?.throwIfAborted()
  stopping?.throwIfAborted()
  // One signal, such as that of a shutdown, may stop any number of POSTs; Node warns from the eleventh on.
  if (request.signal !== undefined) setMaxListeners(0, request.signal)
  const stop = new AbortController()
  const ignoreSignal = onAbort([request.signal], (reason) => stop.abort(reason))
  const startedAt = new Date(tools.nowMs())
  const startedAtMs = performance.now()
  const expire = (): void => stop.abort(deadlinePassed(timeoutMs))
  // Where this process could not run, timers run first: the answer may have come in time, and wait to be read.
  const cancelExpiry = afterPauses(timeoutMs, expire)
  const progress: Progress = { isBegun: false, answer: null }
  const ignoreStopping = onAbort([stopping], (reason) => {
    if (!progress.isBegun) stop.abort(reason)
  })
  let thrown: unknown = null
  try {
    await raceAbort(exchange(tools, request, stop.signal, progress), stop.signal)
  } catch (error) {
    request.signal?.throwIfAborted()
    if (!progress.isBegun) stopping?.throwIfAborted()
    thrown = stop.signal.aborted ? stop.signal.reason : error
  } finally {
    cancelExpiry()
    ignoreSignal()
    ignoreStopping()
  }
  const durationMs = Math.round(performance.now() - startedAtMs)
  // A short pause may end the try of an address (1.5 s), by a timer that runs before the socket, which is open by then.
  const kind = progress.isBegun ? 'long' : 'short'
  const isInconclusive = progress.answer === null && pauses.pausedSince(startedAtMs, kind)
  return postResult(progress.answer, thrown, { startedAt, durationMs, isInconclusive })
}

type Timing = Pick<PostResult, 'startedAt' | 'durationMs' | 'isInconclusive'>

function postResult(answer: Answer | null, thrown: unknown, timing: Timing): PostResult {
  const { startedAt, durationMs, isInconclusive } = timing
  const statusCode = answer?.statusCode ?? null
  const { failureCode, error } = failureOf(statusCode, thrown)
  const succeeded = failureCode === null
  const response =
    answer === null
      ? null
      : { headers: answer.headers, body: answer.body.text(), truncated: answer.body.isTruncated() }
  return { succeeded, failureCode, statusCode, error, startedAt, durationMs, response, isInconclusive }
}

function failureOf(statusCode: number | null, thrown: unknown): Pick<PostResult, 'failureCode' | 'error'> {
  if (statusCode === null) return describeError(thrown)
  return isSuccessStatus(statusCode) ? { failureCode: null, error: null } : describeStatus(statusCode)
}

function deadlinePassed(timeoutMs: number): OutboundError {
  return new OutboundError('timeout', `No answer within ${formatSeconds(timeoutMs)}.`)
}

import { setTimeout as delay } from 'node:timers/promises'
import { EventSourceParserStream, ParseError, type EventSourceMessage } from 'eventsource-parser/stream'
import { retryDelayMs, problemIn, readJson, retryAfterMs } from '../../outbound/api-answer.ts'
import { describeError, visibleText } from '../../process/visible-text.ts'

/** One event of the stream; `data` is its envelope in one line. */
export type StreamedEvent = { id: string; key: string; data: string }

type StreamOptions = {
  apiUrl: string
  apiKey: string
  organisationId: string | null
  events: string | null
}

type StreamListener = {
  /** Takes an event. Nothing more is read until it resolves. */
  onEvent(event: StreamedEvent): Promise<void>
  onConnected(organisationId: string): void
  /** Takes one line for the user: a gap, or why the stream broke and when it is opened again. */
  onNote(line: string): void
}

/** The server sends a comment every 15 seconds: after so much silence the connection is dead. */
const SILENCE_TIMEOUT_MS = 45_000

/** Until the server names another delay. */
const DEFAULT_RETRY_MS = 3_000

/** How far the stream was read. */
type Progress = {
  organisationId: string | null
  lastEventId: string | null
  retryMs: number
  /** Connections in a row that gave nothing. */
  failures: number
}

/**
 * Follows the event stream until `signal` aborts. After a break it resumes after the last event that was taken. Throws
 * RefusedError when the API refuses.
 */
export async function followEvents(
  options: StreamOptions,
  listener: StreamListener,
  signal: AbortSignal,
): Promise<never> {
  const progress: Progress = {
    organisationId: options.organisationId,
    lastEventId: null,
    retryMs: DEFAULT_RETRY_MS,
    failures: 0,
  }
  for (;;) {
    const { message, retryAfterMs } = await readOnce(options, progress, listener, signal)
    const waitMs = retryDelayMs({ ...progress, retryAfterMs }, Math.random())
    progress.failures++
    listener.onNote(`${message} Trying again in ${(waitMs / 1_000).toFixed(1)} s.`)
    await delay(waitMs, undefined, { signal })
  }
}

/** Reads one connection to its end, and returns why it ended. */
async function readOnce(
  options: StreamOptions,
  progress: Progress,
  listener: StreamListener,
  stop: AbortSignal,
): Promise<UnavailableError> {
  const silence = createSilenceTimer()
  const signal = AbortSignal.any([stop, silence.signal])
  const hearOfServer = (): void => {
    progress.failures = 0
    silence.restart()
  }
  try {
    progress.organisationId ??= await findOrganisation(options, signal)
    const body = await openStream(options, progress, signal)
    listener.onConnected(progress.organisationId)
    const parser = new EventSourceParserStream({
      onComment: hearOfServer,
      onRetry(retryMs) {
        progress.retryMs = retryMs
        hearOfServer()
      },
      maxBufferSize: MAX_EVENT_LENGTH,
    })
    for await (const event of readEvents(body.pipeThrough(parser))) {
      silence.stop()
      const { id, event: key, data } = event
      if (key === 'gap') listener.onNote(describeGap(progress))
      else if (key === 'payload_erased') listener.onNote(`The payload of event ${id} is erased.`)
      else if (key !== 'position' && id !== undefined && key !== undefined)
        await listener.onEvent({ id, key, data })
      progress.lastEventId = id ?? progress.lastEventId
      hearOfServer()
    }
    return new UnavailableError('The stream ended.')
  } catch (error) {
    stop.throwIfAborted()
    if (silence.signal.aborted) return new UnavailableError(`${options.apiUrl} is silent.`)
    if (error instanceof UnavailableError) return error
    throw error
  } finally {
    silence.stop()
  }
}

async function openStream(
  options: StreamOptions,
  { organisationId, lastEventId }: Progress,
  signal: AbortSignal,
): Promise<ReadableStream<string>> {
  const query = options.events === null ? '' : `?events=${encodeURIComponent(options.events)}`
  const { body } = await getFromApi(
    options,
    {
      path: `/api/orgs/${encodeURIComponent(organisationId ?? '')}/events/stream${query}`,
      type: 'text/event-stream',
      headers: lastEventId === null ? {} : { 'last-event-id': lastEventId },
    },
    signal,
  )
  if (body === null) throw new UnavailableError('The stream ended.')
  return body.pipeThrough(new TextDecoderStream())
}

function describeGap({ lastEventId }: Progress): string {
  const where = lastEventId === null ? '' : ` after ${lastEventId}`
  return `Gap: events${where} may be missing, since retention has deleted them or Posthorn does not know that id. The stream continues from now on.`
}

function createSilenceTimer() {
  const controller = new AbortController()
  const start = () => setTimeout(() => controller.abort(), SILENCE_TIMEOUT_MS)
  let timer = start()
  const stop = (): void => clearTimeout(timer)
  return {
    signal: controller.signal,
    stop,
    restart(): void {
      stop()
      timer = start()
    },
  }
}

/** No envelope is nearly as large. */
const MAX_EVENT_LENGTH = 4 * 1024 * 1024

/** Passes the events of a stream on. Throws UnavailableError when the connection breaks. */
async function* readEvents(events: AsyncIterable<EventSourceMessage>): AsyncGenerator<EventSourceMessage> {
  try {
    yield* events
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error
    const reason =
      cause instanceof ParseError ? 'an event is larger than events of Posthorn are' : describeError(cause)
    throw new UnavailableError(`The stream broke: ${visibleText(reason)}.`)
  }
}

/** The API refuses what was requested, and would refuse it again. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
}

/** The API cannot be reached, or takes the request later: after `retryAfterMs` where it names a time. */
class UnavailableError extends Error {
  override readonly name = 'UnavailableError'
  readonly retryAfterMs: number | null

  constructor(message: string, retryAfterMs: number | null = null) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}

const MAX_SHOWN_LENGTH = 500

const NOT_POSTHORN = ', but not as Posthorn does: is this its address?'

type Api = { apiUrl: string; apiKey: string }

/**
 * Sends a GET to the API and returns its answer, a 200 of media type `type`. Throws UnavailableError where another try may
 * succeed, and RefusedError otherwise; each says in one line what the API answers.
 */
async function getFromApi(
  api: Api,
  { path, type, headers }: { path: string; type: string; headers?: Record<string, string> },
  signal: AbortSignal,
): Promise<Response> {
  const { apiUrl, apiKey } = api
  const response = await fetch(`${apiUrl}${path}`, {
    headers: { ...headers, accept: type, 'x-api-key': apiKey },
    // A redirect could lead the key to another host.
    redirect: 'manual',
    signal,
  }).catch((error: unknown) => {
    throw unreachable(api, error)
  })
  const { status } = response
  const isOfType = response.headers.get('content-type')?.startsWith(type) === true
  if (status === 200 && isOfType) return response
  const answered = `${apiUrl} answers ${status}${await describeProblem(api, response)}`
  if (status === 408 || status === 429 || status >= 500)
    throw new UnavailableError(answered, retryAfterMs(response.headers.get('retry-after')))
  throw new RefusedError(answered)
}

/** Returns the organisation of the key's member. */
async function findOrganisation(api: Api, signal: AbortSignal): Promise<string> {
  const response = await getFromApi(api, { path: '/api/session', type: 'application/json' }, signal)
  const session = (await readAnswer(api, response)) as { organisation?: { id?: unknown } } | null
  const id = session?.organisation?.id
  if (typeof id !== 'string') throw new RefusedError(`${api.apiUrl} answers 200${NOT_POSTHORN}`)
  return id
}

/** Returns code and reasons of a problem document (RFC 9457), or that there is none. */
async function describeProblem(api: Api, response: Response): Promise<string> {
  const problem = problemIn(await readAnswer(api, response))
  if (problem === null) return NOT_POSTHORN
  const { code, detail, errors = [{ detail }] } = problem
  const reasons = errors.map((error) => error.detail ?? '')
  return visibleText(` ${code}: ${reasons.join(' ')}`).slice(0, MAX_SHOWN_LENGTH)
}

function readAnswer(api: Api, response: Response): Promise<unknown> {
  return readJson(response).catch((error: unknown) => {
    throw unreachable(api, error)
  })
}

function unreachable({ apiUrl }: Api, error: unknown): UnavailableError {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return new UnavailableError(`${apiUrl} cannot be reached: ${visibleText(describeError(cause))}.`)
}

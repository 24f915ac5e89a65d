import { setTimeout as delay } from 'node:timers/promises'
import { findOrganisation, getFromApi, UnavailableError } from './api-request.ts'
import { EventSourceParserStream, ParseError, type EventSourceMessage } from 'eventsource-parser/stream'
import { retryDelayMs } from '../../outbound/api-answer.ts'
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

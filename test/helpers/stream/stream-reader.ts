import { createParser, type EventSourceMessage } from 'eventsource-parser'

export type StreamReader = {
  status: number
  headers: Headers
  /** What a parser that is not ours made of it, in order; without the positions. */
  events: EventSourceMessage[]
  /** The id that an `EventSource` would reconnect with; null before the first. */
  lastEventId(): string | null
  comments: string[]
  retries: number[]
  /** Everything that came, as bytes. */
  bytes(): Buffer
  /** Resolves when the stream is over, for any reason: `true` when it was ended cleanly. */
  ended: Promise<boolean>
  close(): Promise<boolean>
}

export type StreamOptions = {
  apiKey?: string
  query?: Record<string, string>
  lastEventId?: string
  onEvent?: (event: EventSourceMessage) => void
}

/** Opens a stream and keeps reading it. `url`: of the API. */
export async function readStream(
  url: string,
  organisationId: string,
  options: StreamOptions = {},
): Promise<StreamReader> {
  const { apiKey, query = {}, onEvent = () => undefined } = options
  let lastEventId = options.lastEventId ?? null
  let text = ''
  const aborter = new AbortController()
  const search = new URLSearchParams(query).toString()
  const response = await fetch(`${url}/api/orgs/${organisationId}/events/stream?${search}`, {
    headers: {
      ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
      ...(lastEventId === null ? {} : { 'last-event-id': lastEventId }),
    },
    signal: aborter.signal,
  })
  const events: EventSourceMessage[] = []
  const comments: string[] = []
  const retries: number[] = []
  const chunks: Uint8Array[] = []
  const parser = createParser({
    onEvent(event) {
      if (event.event === 'position') return
      events.push(event)
      onEvent(event)
    },
    onComment: (comment) => void comments.push(comment),
    onRetry: (ms) => void retries.push(ms),
  })
  const ended = consume(response, (chunk, decoded) => {
    chunks.push(chunk)
    parser.feed(decoded)
    const blocks = (text + decoded).split('\n\n')
    text = blocks.pop() ?? ''
    // An id counts without data too (HTML standard, 9.2.6), which the parser does not report.
    for (const block of blocks) lastEventId = /^id: (.+)$/m.exec(block)?.[1] ?? lastEventId
  })
  return {
    status: response.status,
    headers: response.headers,
    events,
    lastEventId: () => lastEventId,
    comments,
    retries,
    bytes: () => Buffer.concat(chunks),
    ended,
    close() {
      aborter.abort()
      return ended
    },
  }
}

async function consume(
  response: Response,
  take: (chunk: Uint8Array, text: string) => void,
): Promise<boolean> {
  const decoder = new TextDecoder()
  try {
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>)
      take(chunk, decoder.decode(chunk, { stream: true }))
    return true
  } catch {
    return false
  }
}

import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { type PostResult, createHttpClient } from '../../outbound/http-client.ts'
import { generateSigningSecret } from '../../secret-box.ts'
import type { Output } from '../command-line/command.ts'
import { followEvents, type StreamedEvent } from './follow-events.ts'
import { visibleText } from '../../process/visible-text.ts'
import { signedHeaders } from '../../outbound/signed-headers.ts'
import { FORWARD_POLICY, FORWARD_TIMEOUT_MS } from './listen-defaults.ts'

export type ListenCommand = {
  /** Without a slash at its end. */
  apiUrl: string
  apiKey: string
  /** Null for that of the key's member. */
  organisationId: string | null
  /** Event keys, separated by commas; null for all that the member may see. */
  events: string | null
  /** Null to print only. */
  forwardTo: string | null
  /** Null for one to be generated. */
  secret: string | null
  printsBodies: boolean
}

/** Events that wait while one is forwarded. Beyond them nothing is read, and the server keeps the others. */
const MAX_QUEUED_EVENTS = 100

/** Follows the event stream, and forwards or prints each event in order. Throws RefusedError when the API refuses. */
export async function listen(command: ListenCommand, output: Output): Promise<never> {
  const { forwardTo, printsBodies } = command
  const secret = command.secret ?? generateSigningSecret()
  // The client of webhooks.
  const client = createHttpClient({ ...FORWARD_POLICY, timeoutMs: FORWARD_TIMEOUT_MS })
  if (forwardTo !== null) output.print(`Signing secret: ${secret}`)
  const stop = new AbortController()

  // A stream of Node.js is the queue: bounded, and in order.
  const queue = new PassThrough({ objectMode: true, highWaterMark: MAX_QUEUED_EVENTS / 2 })
  const listener = {
    async onEvent(event: StreamedEvent): Promise<void> {
      if (!queue.write(event)) await once(queue, 'drain', { signal: stop.signal })
    },
    onConnected(organisationId: string): void {
      const events = command.events ?? 'all events that the key may see'
      const target = forwardTo === null ? '' : `, forwarded to ${forwardTo}; a failure is not retried`
      output.note(`Listening at ${command.apiUrl} for ${events} of ${visibleText(organisationId)}${target}.`)
    },
    onNote: (line: string) => output.note(line),
  }
  /** Sends an event as webhooks send it, with the same headers and bytes. Rejects only when the listening stops. */
  function forward({ id, data }: StreamedEvent, url: string): Promise<PostResult> {
    const body = Buffer.from(data)
    const headers = signedHeaders(id, secret, body)
    return client.post({ url, headers, body, signal: stop.signal, reuseKey: 'listen' })
  }
  async function take(event: StreamedEvent): Promise<void> {
    const line = describeEvent(event, forwardTo === null ? null : await forward(event, forwardTo))
    output.print(printsBodies ? `${line}\n${visibleText(event.data)}` : line)
  }
  async function takeAll(): Promise<never> {
    for await (const event of queue) await take(event as StreamedEvent)
    throw new Error('the queue of events has ended')
  }

  try {
    return await Promise.race([followEvents(command, listener, stop.signal), takeAll()])
  } finally {
    const lost = queue.readableLength + queue.writableLength
    if (lost > 0) output.note(`Events that were received and not forwarded: ${lost}.`)
    stop.abort()
    queue.destroy()
    await client.close()
  }
}

/** Returns the line of an event; `result` is null where it was not forwarded. */
function describeEvent({ key, id }: StreamedEvent, result: PostResult | null): string {
  const now = new Date()
  const time = `${now.toTimeString().slice(0, 8)}.${String(now.getMilliseconds()).padStart(3, '0')}`
  const line = `${time}  ${visibleText(key)}  ${visibleText(id)}`
  if (result === null) return line
  const { succeeded, statusCode, failureCode, durationMs, error } = result
  const failure = succeeded ? '' : `  failed, not retried: ${visibleText(error ?? '')}`
  return `${line}  ${statusCode ?? failureCode ?? ''}  ${durationMs} ms${failure}`
}

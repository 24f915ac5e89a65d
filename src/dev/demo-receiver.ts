import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { visibleText } from '../process/visible-text.ts'

/** A webhook endpoint to try deliveries on. */
export type DemoReceiver = {
  /** Answers 200; `<url>/fail` answers 500, `<url>/slow` answers after two seconds. */
  url: string
  stop(): Promise<void>
}

const SLOW_ANSWER_MS = 2_000

/** Any process on this machine may send: one request is one line. */
const MAX_SHOWN_LENGTH = 500

/**
 * Starts an HTTP server on 127.0.0.1 that prints one line for each POST: on `port` if that is free, else on a free one.
 */
export async function startDemoReceiver(options: {
  print: (line: string) => void
  port?: number
}): Promise<DemoReceiver> {
  const server = createServer((request, response) => {
    // A sender that disconnects halfway is not an error of the receiver.
    answer(request, response, options.print).catch(() => response.destroy())
  })
  await listenOn(server, options.port ?? 0).catch(() => listenOn(server, 0))
  // A connection that could not be accepted; without a listener it would end the process.
  server.on('error', () => undefined)
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function listenOn(server: Server, port: number): Promise<void> {
  await once(server.listen(port, '127.0.0.1'), 'listening')
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  print: (line: string) => void,
): Promise<void> {
  const body = await buffer(request)
  if (request.method !== 'POST') {
    response.writeHead(405, { allow: 'POST' }).end()
    return
  }
  const path = new URL(request.url ?? '/', 'http://receiver').pathname
  if (path === '/slow') await wait(SLOW_ANSWER_MS)
  const status = path === '/fail' ? 500 : 200
  const eventId = String(request.headers['x-webhook-event-id'] ?? '(none)')
  const size = `${body.byteLength} bytes`
  const sent = visibleText(`${path} ${readEventKey(body)} X-Webhook-Event-ID ${eventId}`)
  print(`POST ${sent.slice(0, MAX_SHOWN_LENGTH)}, ${size}, answered ${status}`)
  response
    .writeHead(status, { 'content-type': 'text/plain' })
    .end(status === 200 ? 'ok\n' : 'failing on purpose\n')
}

function readEventKey(body: Buffer): string {
  try {
    const envelope = JSON.parse(body.toString('utf8')) as { event?: unknown } | null
    return typeof envelope?.event === 'string' ? envelope.event : '(no event key)'
  } catch {
    return '(not JSON)'
  }
}

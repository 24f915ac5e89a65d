import { once } from 'node:events'
import { connect } from 'node:net'

/** One kept connection that carries one request at a time. */
export type HttpConnection = {
  /** Sends a whole request, head and body, and resolves with the answer to it. */
  send(request: Buffer): Promise<{ status: number; body: string }>
  /** Open, and not idle for so long that the API may be about to close it. */
  isUsable(): boolean
  close(): void
}

type Waiting = {
  resolve: (answer: { status: number; body: string }) => void
  reject: (error: Error) => void
}

/** The API closes what lies idle for five seconds; a request that crosses that is lost. */
const IDLE_MS = 3_000

const HEAD_END = '\r\n\r\n'
const LAST_CHUNK = '0\r\n\r\n'

/**
 * A load generator has to cost less than what it loads: this needs a third of the processor time of a general client.
 */
export async function openHttpConnection(address: { host: string; port: number }): Promise<HttpConnection> {
  const socket = connect({ ...address, noDelay: true })
  await once(socket, 'connect')
  let received = ''
  let waiting: Waiting | null = null
  let isOpen = true
  let usedAtMs = performance.now()

  const end = (error: Error): void => {
    isOpen = false
    waiting?.reject(error)
    waiting = null
  }
  socket.setEncoding('latin1')
  socket.on('error', end)
  socket.on('close', () => end(new Error('the API closed the connection')))
  socket.on('data', (chunk: string) => {
    received += chunk
    const answer = parseAnswer(received)
    if (answer === null || waiting === null) return
    received = ''
    const { resolve } = waiting
    waiting = null
    resolve(answer)
  })
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        usedAtMs = performance.now()
        waiting = { resolve, reject }
        socket.write(request)
      }),
    isUsable: () => isOpen && performance.now() - usedAtMs < IDLE_MS,
    close: () => void socket.destroy(),
  }
}

/** Null as long as something is missing. */
function parseAnswer(text: string): { status: number; body: string } | null {
  const headEnd = text.indexOf(HEAD_END)
  if (headEnd === -1) return null
  const head = text.slice(0, headEnd)
  const status = Number(head.slice(9, 12))
  const sent = text.slice(headEnd + HEAD_END.length)
  if (/\r\ntransfer-encoding: *chunked/i.test(head))
    return sent.endsWith(LAST_CHUNK) ? { status, body: joinChunks(sent) } : null
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  return sent.length < length ? null : { status, body: sent }
}

/** Chunks without extensions and trailers. */
function joinChunks(sent: string): string {
  let body = ''
  for (let at = 0; ;) {
    const sizeEnd = sent.indexOf('\r\n', at)
    const size = Number.parseInt(sent.slice(at, sizeEnd), 16)
    if (!(size > 0)) return body
    const begin = sizeEnd + 2
    body += sent.slice(begin, begin + size)
    at = begin + size + 2
  }
}

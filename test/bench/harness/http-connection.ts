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

/**
 * A load generator has to cost less than what it loads: this needs a third of the processor time of a general client.
 * It understands answers with a Content-Length, which is what the API sends.
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
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error(`an answer without Content-Length:\n${head}`)
  const body = text.slice(headEnd + HEAD_END.length)
  return body.length < Number(length) ? null : { status: Number(head.slice(9, 12)), body }
}

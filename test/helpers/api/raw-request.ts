import { request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

/** An answer as it came over the wire. */
export type RawAnswer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

export type RawRequest = {
  method: string
  path: string
  /** A list is sent as so many headers of that name. */
  headers?: Record<string, string | string[]>
  body?: string | Uint8Array
}

/**
 * One request through `node:http`, which also sends what `fetch` refuses to: TRACE, two headers of a name, no length.
 */
export function sendRaw(url: string, { method, path, headers = {}, body }: RawRequest): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const outgoing = request({
      hostname,
      port,
      method,
      path,
      headers: { ...length, ...headers },
      agent: false,
    })
    outgoing.on('error', reject)
    outgoing.on('response', (response) => {
      text(response).then(
        (answer) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: answer }),
        reject,
      )
    })
    outgoing.end(body)
  })
}

/** Sends these very bytes and returns all that comes back until the server hangs up; empty when it sends nothing. */
export function sendBytes(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes, 'latin1'))
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')))
  })
}

/** Splits what came over a socket, which is one answer with a length. */
export function parseAnswer(bytes: string): { head: string; body: string } {
  const [head = '', ...rest] = bytes.split('\r\n\r\n')
  return { head, body: rest.join('\r\n\r\n') }
}

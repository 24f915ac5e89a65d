import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'

/** One POST as the receiver saw it. Times in Unix ms: of its arrival, and of the end of our answer. */
type ReceivedPost = {
  path: string
  headers: IncomingMessage['headers']
  rawHeaders: string[]
  body: Buffer
  arrivedAt: number
  answeredAt: number
}

/** A status to answer with, or a function that answers itself. `index` counts the POSTs of one event id from 0. */
export type Answer = (
  index: number,
  post: ReceivedPost,
  response: ServerResponse,
) => number | Promise<number | null> | null

export type Receiver = {
  url: string
  posts: ReceivedPost[]
  /** POSTs that carried this `X-Webhook-Event-ID`, in order of arrival. */
  postsOf(deliveryId: string): ReceivedPost[]
  close(): Promise<void>
}

/** A customer's endpoint on a free port; TLS where a certificate is given. By default it confirms everything. */
export async function createReceiver(
  options: { answer?: Answer; tls?: { key: string; cert: string } } = {},
): Promise<Receiver> {
  const { answer = () => 200, tls } = options
  const posts: ReceivedPost[] = []
  const postsOf = (deliveryId: string): ReceivedPost[] =>
    posts.filter((post) => post.headers['x-webhook-event-id'] === deliveryId)

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const arrivedAt = Date.now()
    const body = await buffer(request)
    const { headers, rawHeaders, url: path = '/' } = request
    const post: ReceivedPost = { path, headers, rawHeaders, body, arrivedAt, answeredAt: 0 }
    const index = postsOf(String(headers['x-webhook-event-id'])).length
    posts.push(post)
    const status = await answer(index, post, response)
    // Stamped before it is sent: who reads the answer may be served by the processor before we are again.
    post.answeredAt = Date.now()
    if (status !== null) response.writeHead(status, { 'content-type': 'text/plain' }).end(`answer ${index}`)
  }
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response).catch(() => response.destroy())
  }
  const server = tls === undefined ? createHttpServer(listener) : createHttpsServer(tls, listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: tls === undefined ? `http://127.0.0.1:${port}/hook` : `https://localhost:${port}/hook`,
    posts,
    postsOf,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** An endpoint whose answers wait until `release`. */
export type DeferredAnswers = {
  answer: Answer
  /** POSTs that wait for their answer, and the largest number of them so far. */
  pending(): number
  maxPending(): number
  /** Answers all waiting and all later POSTs with this status. */
  release(status?: number): void
}

export function createDeferredAnswers(): DeferredAnswers {
  const waiting: ((status: number) => void)[] = []
  let max = 0
  let released: number | null = null
  return {
    answer: () =>
      released ??
      new Promise<number>((resolve) => {
        waiting.push(resolve)
        max = Math.max(max, waiting.length)
      }),
    pending: () => waiting.length,
    maxPending: () => max,
    release(status = 200) {
      released = status
      for (const resolve of waiting.splice(0)) resolve(status)
    },
  }
}

export type Certificate = { key: string; cert: string; /** Path for NODE_EXTRA_CA_CERTS. */ file: string }

type CertificateOptions = {
  name?: string
  /** Left out, the name; null for a certificate that only its subject names. */
  altName?: string | null
  notBeforeDate?: Date
  notAfterDate?: Date
}

/** A certificate that signs itself, for `localhost`; a process trusts it when NODE_EXTRA_CA_CERTS names its file. */
export async function createCertificate(options: CertificateOptions = {}): Promise<Certificate> {
  const { name = 'localhost', altName = name, ...dates } = options
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    ...dates,
    extensions: [
      { name: 'basicConstraints', cA: true },
      ...(altName === null
        ? []
        : [{ name: 'subjectAltName' as const, altNames: [{ type: 2 as const, value: altName }] }]),
    ],
  })
  const file = join(mkdtempSync(join(tmpdir(), 'posthorn-certificate-')), 'ca.pem')
  writeFileSync(file, made.cert)
  return { key: made.private, cert: made.cert, file }
}

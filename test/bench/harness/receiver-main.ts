import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { clock } from '../measure/clock.ts'
import { serveHarness } from './harness-process.ts'
import { postsUntilConfirmed, type Arrival, type PathCount, type ReceiverRequest } from './receiver.ts'

// The endpoints of all webhooks: notes what comes, and answers as the path says.

/** Until an endpoint that is slow answers. */
const SLOW_MS = 2_000

type Post = Arrival & { index: number }

let arrivals: Arrival[] = []
let idHeader = ''
/** How many POSTs came, by path and there by delivery. */
const seen = new Map<string, { posts: number; byDelivery: Map<string, number> }>()

serveHarness((request: ReceiverRequest): Promise<unknown> => {
  switch (request.kind) {
    case 'listen':
      idHeader = request.idHeader
      return listen(request)
    case 'counts':
      return Promise.resolve(counts())
    case 'take': {
      const taken = arrivals
      arrivals = []
      seen.clear()
      return Promise.resolve(taken)
    }
  }
})

function listen({ host, tls }: Extract<ReceiverRequest, { kind: 'listen' }>): Promise<number> {
  const server = tls === null ? createServer(receive) : createTlsServer(tls, receive)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, host, () => resolve((server.address() as AddressInfo).port))
  })
}

function receive(request: IncomingMessage, response: ServerResponse): void {
  const arrivedAt = clock()
  const deliveryId = String(request.headers[idHeader])
  const path = request.url ?? '/'
  const post = { deliveryId, path, arrivedAt, answeredAt: null, index: countUp(path, deliveryId) }
  arrivals.push(post)
  request.resume()
  request.once('end', () => answer(post, response))
}

function answer(post: Post, response: ServerResponse): void {
  if (post.path.startsWith('/hang/')) return
  if (post.path.startsWith('/slow/')) setTimeout(() => confirmOrRefuse(post, response), SLOW_MS)
  else confirmOrRefuse(post, response)
}

function confirmOrRefuse(post: Post, response: ServerResponse): void {
  const isRefused = post.index < postsUntilConfirmed(post.path) - 1
  response.statusCode = isRefused ? 503 : 200
  // Before it leaves: who reads the answer may be served by the processor before we are again.
  post.answeredAt = clock()
  response.end(isRefused ? 'not now' : 'ok')
}

/** Answers how many POSTs of the delivery came to the path before. */
function countUp(path: string, deliveryId: string): number {
  let ofPath = seen.get(path)
  if (ofPath === undefined) {
    ofPath = { posts: 0, byDelivery: new Map() }
    seen.set(path, ofPath)
  }
  const before = ofPath.byDelivery.get(deliveryId) ?? 0
  ofPath.byDelivery.set(deliveryId, before + 1)
  ofPath.posts += 1
  return before
}

function counts(): Record<string, PathCount> {
  const entries = [...seen].map(
    ([path, { posts, byDelivery }]) => [path, { posts, deliveries: byDelivery.size }] as const,
  )
  return Object.fromEntries(entries)
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../../src/free-port.ts'
import { nowMs } from './clock.ts'
import type { Dice } from './dice.ts'
import type { Behaviour, EndpointPlan } from './plan.ts'
import type { LedgerPost } from './record.ts'

/** The endpoints of all webhooks of a play, on one port, and the ledger of what they received and answered. */
export type Endpoints = {
  port: number
  /** Adds an endpoint that behaves as planned, and returns its number. */
  add(phases: EndpointPlan['phases']): number
  /** `version`: how often the webhook's URL has changed. */
  urlOf(index: number, version: number): string
  /** Which webhook the endpoint belongs to, and its POSTs of before: its creation may be confirmed late. */
  belongsTo(index: number, webhookId: string): void
  ledger: LedgerPost[]
  /** Begins the phases of the plan. */
  begin(): void
  close(): Promise<void>
}

const FAILURES = [400, 404, 410, 429, 500, 502, 503]

/** `senderOf` names the process that connects from an address. */
export async function createEndpoints(
  dice: Dice,
  senderOf: (address: string) => string | null,
): Promise<Endpoints> {
  const ledger: LedgerPost[] = []
  const endpoints: { webhookId: string; phases: EndpointPlan['phases'] }[] = []
  const closedPort = await freePort()
  let begunAt: number | null = null

  function behaviourOf({ phases }: Pick<EndpointPlan, 'phases'>): Behaviour {
    let leftMs = nowMs() - (begunAt ?? nowMs())
    for (const { forMs, behaviour } of phases) {
      leftMs -= forMs
      if (leftMs < 0) return behaviour
    }
    return phases.at(-1)!.behaviour
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAt = nowMs()
    const [, index, version] = /(\d+)\/(\d+)$/.exec(request.url ?? '') ?? []
    const endpoint = endpoints[Number(index)] ?? {
      webhookId: '',
      phases: [{ forMs: 0, behaviour: 'confirms' }],
    }
    const behaviour = behaviourOf(endpoint)
    const post: LedgerPost = {
      id: ledger.length + 1,
      sender: senderOf(request.socket.remoteAddress ?? ''),
      get webhookId() {
        return endpoint.webhookId
      },
      urlVersion: Number(version),
      deliveryId: String(request.headers['x-webhook-event-id']),
      signature: String(request.headers['x-webhook-signature']),
      body: '',
      arrivedAt,
      endedAt: null,
      status: null,
    }
    ledger.push(post)
    response.once('close', () => (post.endedAt ??= nowMs()))
    post.body = (await buffer(request)).toString()
    const status = await answerOf(behaviour)
    if (status === 'reset') request.socket.resetAndDestroy()
    // Null once the sender has hung up: it reads no answer.
    if (status === null || status === 'reset' || post.endedAt !== null) return
    post.endedAt = nowMs()
    post.status = status
    response.writeHead(status, { 'content-type': 'text/plain' }).end(`post ${post.id}`)
  }

  async function answerOf(behaviour: Behaviour): Promise<number | 'reset' | null> {
    switch (behaviour) {
      case 'confirms':
        return 200
      case 'fails':
        return dice.pick(FAILURES)
      case 'mixed':
        return dice.chance(2 / 3) ? 201 : dice.pick(FAILURES)
      case 'slow':
        await delay(dice.int(100, 1_500))
        return 200
      case 'resets':
        return 'reset'
      case 'hangs':
      case 'refuses':
        return null
    }
  }

  const server = createServer((request, response) => {
    response.on('error', () => undefined)
    handle(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    add: (phases) => endpoints.push({ webhookId: '', phases }) - 1,
    urlOf(index, version) {
      const refuses = endpoints[index]!.phases.every(({ behaviour }) => behaviour === 'refuses')
      return `http://127.0.0.1:${refuses ? closedPort : port}/endpoint/${index}/${version}`
    },
    belongsTo: (index, webhookId) => (endpoints[index]!.webhookId = webhookId),
    ledger,
    begin: () => (begunAt = nowMs()),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

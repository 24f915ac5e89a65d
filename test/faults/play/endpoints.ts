import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { nowMs } from './clock.ts'
import type { Dice } from './dice.ts'
import type { Behaviour, EndpointPlan } from './plan.ts'
import type { LedgerPost } from './record.ts'

/** The endpoints of all webhooks of a play, on one port, and the ledger of what they received and answered. */
export type Endpoints = {
  urlOf(index: number): string
  /** Which webhook the endpoint belongs to; until then it has no ledger. */
  belongsTo(index: number, webhookId: string): void
  ledger: LedgerPost[]
  /** Begins the phases of the plan. */
  begin(): void
  /** Confirms everything from now on. */
  calmDown(): void
  close(): Promise<void>
}

const FAILURES = [400, 404, 410, 429, 500, 502, 503]

export async function createEndpoints(plans: readonly EndpointPlan[], dice: Dice): Promise<Endpoints> {
  const ledger: LedgerPost[] = []
  const webhookIds = plans.map(() => '')
  let begunAt: number | null = null
  let isCalm = false

  function behaviourOf(index: number): Behaviour {
    if (isCalm || begunAt === null) return 'confirms'
    let leftMs = nowMs() - begunAt
    const { phases } = plans[index]!
    for (const { forMs, behaviour } of phases) {
      leftMs -= forMs
      if (leftMs < 0) return behaviour
    }
    return phases.at(-1)!.behaviour
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAt = nowMs()
    const index = Number(/\d+$/.exec(request.url ?? '')?.[0] ?? 0)
    const behaviour = behaviourOf(index)
    const post: LedgerPost = {
      id: ledger.length + 1,
      webhookId: webhookIds[index] ?? '',
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
    // Null once the sender has hung up: it reads no answer.
    if (status === null || post.endedAt !== null) return
    post.endedAt = nowMs()
    post.status = status
    response.writeHead(status, { 'content-type': 'text/plain' }).end(`post ${post.id}`)
  }

  async function answerOf(behaviour: Behaviour): Promise<number | null> {
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
      case 'hangs':
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
    urlOf: (index) => `http://127.0.0.1:${port}/endpoint/${index}`,
    belongsTo: (index, webhookId) => (webhookIds[index] = webhookId),
    ledger,
    begin: () => (begunAt = nowMs()),
    calmDown: () => (isCalm = true),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

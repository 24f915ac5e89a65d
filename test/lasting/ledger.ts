import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AcceptedEvent } from '../helpers/processes/steady-publisher.ts'

/** What is known of one delivery; times by `performance.now()`. */
type Entry = {
  dueAt: number | null
  arrivedAt: number | null
  isRefused: boolean
  confirmedAt: number | null
}

/** Two endpoints with one ledger. */
export type Endpoints = { url: string; refusingUrl: string; ledger: Ledger; close(): Promise<void> }

/** A delivery that came again after it had been confirmed. */
type Repeat = { confirmedAt: number; repeatedAt: number }

/** What was accepted compared with what came. */
export type Ledger = {
  accepted: number
  confirmed: number
  repeats: Repeat[]
  /** Times in ms from publishing to the first POST, of what came to the confirming endpoint since it was last asked. */
  takeDelays(): number[]
  note(event: AcceptedEvent): void
  /** Accepted deliveries that have not been confirmed. */
  open(): number
}

const REFUSING_PATH = '/refuses-once'

/**
 * Two endpoints and the ledger of what they got: `url` confirms each delivery, `refusingUrl` at its second POST. It keeps
 * what hours of load can be held in: four values for each delivery.
 */
export async function startEndpoints(): Promise<Endpoints> {
  const entries = new Map<string, Entry>()
  let delays: number[] = []
  const ledger: Ledger = {
    accepted: 0,
    confirmed: 0,
    repeats: [],
    takeDelays() {
      const taken = delays
      delays = []
      return taken
    },
    note({ deliveryIds, dueAt }) {
      for (const id of deliveryIds) {
        const entry = entryOf(id)
        ledger.accepted += 1
        entry.dueAt = dueAt
        if (entry.arrivedAt !== null && !entry.isRefused) delays.push(entry.arrivedAt - dueAt)
      }
    },
    open: () =>
      [...entries.values()].filter(({ dueAt, confirmedAt }) => dueAt !== null && confirmedAt === null).length,
  }

  function entryOf(id: string): Entry {
    const known = entries.get(id)
    if (known !== undefined) return known
    const entry = { dueAt: null, arrivedAt: null, isRefused: false, confirmedAt: null }
    entries.set(id, entry)
    return entry
  }

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const id = String(request.headers['x-webhook-event-id'])
    const entry = entryOf(id)
    const now = performance.now()
    const refuses = !entry.isRefused && request.url === REFUSING_PATH
    if (entry.arrivedAt === null) {
      entry.arrivedAt = now
      // One that comes before its event was answered is counted with the answer.
      if (entry.dueAt !== null && !refuses) delays.push(now - entry.dueAt)
    }
    if (refuses) entry.isRefused = true
    else if (entry.confirmedAt !== null)
      ledger.repeats.push({ confirmedAt: entry.confirmedAt, repeatedAt: now })
    else {
      entry.confirmedAt = now
      ledger.confirmed += 1
    }
    request.resume().once('end', () => response.writeHead(refuses ? 503 : 200).end())
  }

  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${address}/confirms`,
    refusingUrl: `${address}${REFUSING_PATH}`,
    ledger,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

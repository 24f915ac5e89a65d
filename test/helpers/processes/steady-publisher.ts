import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { callApi } from '../api/api.ts'

/** An event that was answered 202. */
export type AcceptedEvent = {
  deliveryIds: string[]
  /** When it was to be published at a steady rate, by `performance.now()`. */
  dueAt: number
  /** The time in ms from its first try to the one that was accepted; 0 where that is the first. */
  refusedForMs: number
}

/** What was published at a steady rate, whatever the processes behind did. */
export type SteadyPublisher = {
  /** Ends after every event so far was accepted. */
  stop(): Promise<void>
}

const RETRY_AFTER_MS = 50

/**
 * Publishes `perSecond` events a second to the APIs in turn, as a platform does: what is refused or not answered is sent
 * to the next one with the same Idempotency-Key, for `giveUpAfterMs`.
 */
export function startSteadyPublisher(options: {
  apis: () => readonly string[]
  path: string
  apiKey: string
  event: string
  perSecond: number
  giveUpAfterMs: number
  /** From a refusal to the next try. */
  retryAfterMs?: number
  onAccepted: (event: AcceptedEvent) => void
}): SteadyPublisher {
  const { apis, path, apiKey, event, perSecond, giveUpAfterMs, onAccepted } = options
  const { retryAfterMs = RETRY_AFTER_MS } = options
  const inFlight = new Set<Promise<void>>()
  const failures: unknown[] = []
  const startedAt = performance.now()
  let sent = 0

  async function publish(number: number): Promise<void> {
    const key = randomUUID()
    const dueAt = startedAt + (number / perSecond) * 1_000
    const begunAt = performance.now()
    for (let attempt = 0; ; attempt += 1) {
      const addresses = apis()
      const url = addresses[(number + attempt) % addresses.length]!
      const triedAt = performance.now()
      const body = { event, data: { id: `cus_${number}` } }
      const answered = await callApi(url, 'POST', path, {
        apiKey,
        body,
        headers: { 'idempotency-key': key },
      }).catch(() => null)
      if (answered?.status === 202) {
        const { deliveries } = answered.json as { deliveries: { id: string }[] }
        const refusedForMs = attempt === 0 ? 0 : triedAt - begunAt
        onAccepted({ deliveryIds: deliveries.map(({ id }) => id), dueAt, refusedForMs })
        return
      }
      if (performance.now() - begunAt > giveUpAfterMs)
        throw new Error(`an event was not accepted: ${answered?.text ?? 'no answer'}`)
      await delay(retryAfterMs)
    }
  }

  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond)
    for (; sent < due; sent += 1) {
      const publishing = publish(sent)
        .catch((error: unknown) => void failures.push(error))
        .finally(() => inFlight.delete(publishing))
      inFlight.add(publishing)
    }
  }, 10)

  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(inFlight)
      if (failures.length > 0)
        throw new AggregateError(failures, `${failures.length} events, the first: ${String(failures[0])}`)
    },
  }
}

import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { callApi } from '../helpers/api/api.ts'

/** What was published at a steady rate, whatever the processes behind did. */
export type SteadyPublisher = {
  /** The ids of the deliveries of accepted events. */
  deliveryIds: string[]
  /** The longest time in ms between the first try of an event and its acceptance. */
  longestRefusalMs(): number
  /** Ends after every event so far was accepted. */
  stop(): Promise<void>
}

const RETRY_AFTER_MS = 50
const GIVE_UP_AFTER_MS = 30_000

/**
 * Publishes `perSecond` events a second to the APIs in turn, as a platform does: what is refused or not answered is sent
 * to the next one with the same Idempotency-Key.
 */
export function startSteadyPublisher(options: {
  apis: () => readonly string[]
  path: string
  apiKey: string
  event: string
  perSecond: number
}): SteadyPublisher {
  const { apis, path, apiKey, event, perSecond } = options
  const deliveryIds: string[] = []
  const inFlight = new Set<Promise<void>>()
  const failures: unknown[] = []
  let longestRefusalMs = 0
  let sent = 0

  async function publish(number: number): Promise<void> {
    const key = randomUUID()
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
        if (attempt > 0) longestRefusalMs = Math.max(longestRefusalMs, triedAt - begunAt)
        deliveryIds.push(
          ...(answered.json as { deliveries: { id: string }[] }).deliveries.map(({ id }) => id),
        )
        return
      }
      if (performance.now() - begunAt > GIVE_UP_AFTER_MS)
        throw new Error(`an event was not accepted: ${answered?.text ?? 'no answer'}`)
      await delay(RETRY_AFTER_MS)
    }
  }

  const startedAt = performance.now()
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
    deliveryIds,
    longestRefusalMs: () => longestRefusalMs,
    async stop() {
      clearInterval(timer)
      await Promise.all(inFlight)
      if (failures.length > 0)
        throw new AggregateError(failures, `${failures.length} events were not accepted`)
    },
  }
}

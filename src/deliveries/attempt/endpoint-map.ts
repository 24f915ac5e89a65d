import { HEALTH_TTL_MS, newEndpoint, type Endpoint } from './endpoint.ts'

/** The endpoints that this process has seen, by their webhook. */
export type EndpointMap = {
  known: ReadonlyMap<string, Endpoint>
  /** Returns the endpoint of a webhook, a new one where it is unknown. */
  of: (webhookId: string) => Endpoint
}

/** Above this, each new endpoint has a few others checked, in turn, and dropped where they are idle. */
const MAX_ENDPOINTS = 10_000
const CHECKED_PER_ENDPOINT = 4

export function createEndpointMap(options: { initialLimit: number; nowMs: () => number }): EndpointMap {
  const { initialLimit, nowMs } = options
  const known = new Map<string, Endpoint>()
  let toCheck = known.entries()

  function dropIdle(): void {
    for (let checked = 0; checked < CHECKED_PER_ENDPOINT; checked++) {
      const { value, done } = toCheck.next()
      if (done) toCheck = known.entries()
      else if (isIdle(value[1], nowMs())) known.delete(value[0])
    }
  }

  return {
    known,
    of(webhookId) {
      const found = known.get(webhookId)
      if (found !== undefined) return found
      if (known.size >= MAX_ENDPOINTS) dropIdle()
      const endpoint = newEndpoint(initialLimit)
      known.set(webhookId, endpoint)
      return endpoint
    },
  }
}

function isIdle({ slots, waiting, expected, unrecorded, lastAtMs }: Endpoint, now: number): boolean {
  const inUse = slots.size + waiting.size + expected.size + unrecorded.size
  return inUse === 0 && lastAtMs < now - HEALTH_TTL_MS
}

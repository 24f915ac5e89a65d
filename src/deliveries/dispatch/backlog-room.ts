import { isSlowOrHanging, type EndpointHealth } from '../attempt/endpoint.ts'

/** The deliveries of an unhealthy webhook in this process. */
type Backlog = {
  endpoint: EndpointHealth
  /** POSTs that the endpoint takes at once, and how many more it takes now. */
  limit: number
  freeSlots: number
  /** Deliveries queued in memory, and first attempts in Temporal. */
  queued: number
  inTemporal: number
}

/** Queued deliveries of a failing webhook: it answers quickly, so they leave the queue soon. */
const MAX_FAILING_QUEUED = 20

/** True when one more delivery may be queued in memory. Others are released once, and wait in the database. */
export function hasBacklogRoom(backlog: Backlog): boolean {
  if (backlog.endpoint === 'hanging') return backlogRoom(backlog) > 0
  return backlog.queued < (backlog.endpoint === 'slow' ? backlog.limit : MAX_FAILING_QUEUED)
}

/** Returns how many deliveries may be taken from the database: those of a slow endpoint only for free slots. */
export function backlogRoom({ endpoint, limit, freeSlots, queued, inTemporal }: Backlog): number {
  if (!isSlowOrHanging(endpoint)) return Math.max(0, MAX_FAILING_QUEUED - queued)
  return Math.max(0, Math.min(freeSlots, limit - inTemporal) - queued)
}

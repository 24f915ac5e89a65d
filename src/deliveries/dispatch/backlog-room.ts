import { isSlowOrHanging, type EndpointHealth } from '../attempt/endpoint.ts'

/** What a webhook that is not healthy has in this process. */
type Backlog = {
  endpoint: EndpointHealth
  /** POSTs that its endpoint takes at once, and how many more it takes now. */
  limit: number
  freeSlots: number
  /** Deliveries that wait in memory, and first attempts that are in Temporal. */
  queued: number
  inTemporal: number
}

/** Deliveries of a failing webhook that wait in memory: it answers quickly, and they are soon served. */
const MAX_FAILING_QUEUED = 20

/** Whether one more delivery may wait in memory. What may not is released once, and waits in the database, untouched. */
export function hasBacklogRoom(backlog: Backlog): boolean {
  if (backlog.endpoint === 'hanging') return backlogRoom(backlog) > 0
  return backlog.queued < (backlog.endpoint === 'slow' ? backlog.limit : MAX_FAILING_QUEUED)
}

/** How many deliveries may be taken from the database: those of a slow endpoint only when it has free slots. */
export function backlogRoom({ endpoint, limit, freeSlots, queued, inTemporal }: Backlog): number {
  if (!isSlowOrHanging(endpoint)) return Math.max(0, MAX_FAILING_QUEUED - queued)
  return Math.max(0, Math.min(freeSlots, limit - inTemporal) - queued)
}

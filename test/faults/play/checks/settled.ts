import type { PlayRecord } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'everything comes to its end'

/** No retry job is left running. Deliveries, incidents and notifications have checks of their own. */
export function checkSettled({ facts }: PlayRecord): Violation[] {
  return facts.retryJobs
    .filter(({ state }) => state !== 'done')
    .map(({ id, state }) => ({ rule: RULE, deliveryId: null, detail: `retry job ${id} is still ${state}` }))
}

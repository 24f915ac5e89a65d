import { setTimeout as delay } from 'node:timers/promises'
import { publish } from './act.ts'
import { nowMs } from './clock.ts'
import { VICTIM } from './plan.ts'
import type { PlayWorld } from './world.ts'

/** The first ones load code. */
const WARM_UP_EVENTS = 10
const MEASURED_EVENTS = 21
const LIMIT_MS = 30_000

/**
 * How much later an event of the victim may come for each other delivery that shares Temporal's queue with it, in ms: as
 * long as one takes while nothing else happens, as if they were made one after the other. Machines differ in it.
 */
export async function measureQueue(world: PlayWorld): Promise<number> {
  const taken: number[] = []
  for (let count = 0; count < WARM_UP_EVENTS + MEASURED_EVENTS; count++) taken.push(await timeDelivery(world))
  const measured = taken.slice(WARM_UP_EVENTS).sort((one, other) => one - other)
  return measured[(MEASURED_EVENTS - 1) / 2]!
}

/** From the request to the POST, in ms. */
async function timeDelivery(world: PlayWorld): Promise<number> {
  const from = nowMs()
  await publish(world, { organisation: VICTIM, eventKey: 'customer:created', isKeyed: false, repeats: 0 })
  const delivery = world.publications.at(-1)!.tries[0]!.deliveries[0]
  if (delivery === undefined) throw new Error('an event of the victim was refused before the first fault')
  for (;;) {
    const post = world.endpoints.ledger.find(({ deliveryId }) => deliveryId === delivery.id)
    if (post !== undefined) return post.arrivedAt - from
    if (nowMs() - from > LIMIT_MS)
      throw new Error('an event of the victim was not delivered before the first fault')
    await delay(5)
  }
}

import {
  deleteDeliveries,
  lockFinalDeliveries,
  settleErased,
  stopForErasure,
} from '../../../../../src/db/queries/erasures.ts'
import { FROM_THE_OLDEST, purgeDeliveries } from '../../../../../src/db/queries/retention.ts'
import { commitEvents } from '../../../../../src/deliveries/protocol/commit-events.ts'
import {
  markWorkflowsStarted,
  sweepDeliveries,
  sweepLater,
} from '../../../../../src/deliveries/protocol/sweep.ts'
import { newId } from '../../../../../src/ids.ts'
import { BEGAN_AT_MS, deliveryId, EVENT_KEY, LEASE_MS, ORGANISATION, WEBHOOK } from '../rows.ts'
import { alone, type Session } from './session.ts'

/** Accepts an event. `room`: how many first attempts the process begins at once. */
export function commit({ room = 0 } = {}): Session {
  return alone(async (manager) => {
    const event = {
      id: newId(),
      organisationId: ORGANISATION,
      key: EVENT_KEY,
      body: Buffer.from('{}'),
      emittedAt: new Date(),
      traceId: 'trace',
      webhookId: null,
    }
    const rooms = { inAll: 1_000, defaultRoom: 0, webhooks: [{ webhookId: WEBHOOK, room }] }
    const [deliveries] = await commitEvents(manager, [event], {
      rooms,
      leaseMs: LEASE_MS,
      sweepAfterMs: 2_000,
    })
    return { answer: deliveries!.filter(({ webhookId }) => webhookId === WEBHOOK).length }
  })
}

/** Notes the workflows that a process has started. */
export function mark(...places: readonly number[]): Session {
  return alone(async (manager) => {
    await markWorkflowsStarted(manager, places.map(deliveryId))
    return {}
  })
}

/** The sweeper takes rows that it read at the beginning; `inMs` null: it settles them. */
export function sweep(
  places: readonly number[],
  { seenInMs, inMs }: { seenInMs: number; inMs: number | null },
): Session {
  return alone(async (manager) => {
    const sweepAt = new Date(BEGAN_AT_MS + seenInMs)
    const rows = places.map((place) => ({ deliveryId: deliveryId(place), sweepAt, inMs, pausedSince: null }))
    return { answer: (await sweepLater(manager, rows)).length }
  })
}

export const sweepEverything: Session = alone(async (manager) => {
  await sweepDeliveries(manager)
  return {}
})

export function purge(state: 'completed' | 'failed' | 'stopped'): Session {
  return async (dataSource) => {
    const { deliveries } = await purgeDeliveries(dataSource, state, {
      days: 30,
      after: FROM_THE_OLDEST,
      limit: 10,
    })
    return { answer: deliveries }
  }
}

/** One step of the erasure of the organisation, without what it ends in Temporal. */
export const erase: Session = async (dataSource) => {
  const stopped = await dataSource.transaction((manager) => stopForErasure(manager, [WEBHOOK], 10))
  await settleErased(dataSource, stopped)
  await dataSource.transaction(async (manager) =>
    deleteDeliveries(manager, await lockFinalDeliveries(manager, [WEBHOOK], 10)),
  )
  return {}
}

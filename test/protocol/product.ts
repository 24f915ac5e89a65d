import type { DataSource, EntityManager } from 'typeorm'
import type { Actor } from '../../src/domain/actor.ts'
import {
  discard,
  markErased,
  requestRetries,
  stopUnwanted,
  type RequestedRetry,
} from '../../src/deliveries/protocol/change-deliveries.ts'
import { eraseBody } from '../../src/db/queries/events.ts'
import { recordAttempts } from '../../src/deliveries/attempt/record-under-lock.ts'
import { markWorkflowsStarted, sweepDeliveries, sweepLater } from '../../src/deliveries/protocol/sweep.ts'
import { claimAttempts, releaseRuns, renewLeases } from '../../src/deliveries/protocol/claim.ts'
import { commitEvents } from '../../src/deliveries/protocol/commit-events.ts'
import { recordFirstSuccesses } from '../../src/deliveries/protocol/record-attempts.ts'
import { stateAfterAttempt } from '../../src/domain/attempt-outcome.ts'
import { DELIVERY_STATES } from '../../src/domain/delivery-state.ts'
import { waitAfterAttempt } from '../../src/domain/retry-schedule.ts'
import { closeAfterDiscard } from '../../src/deliveries/retry/discard-deliveries.ts'
import { createWebhookLocks, transactOnWebhook } from '../../src/webhooks/webhook-locks.ts'
import { deleteWebhook, updateWebhook } from '../../src/webhooks/change-webhook.ts'
import { silentLogger } from '../helpers/silent-logger.ts'
import type { ExplorerDatabase } from './database.ts'
import { deliveryId, eventId, NOW, ORGANISATION, WEBHOOK, type Image } from './image.ts'
import { rowOf, type Outcome, type Run, type State } from './state.ts'

const LEASE_MS = 15_000
/** The sweeper has a row for itself for this time. No other statement sets such an instant: no time passes between steps. */
export const SWEEP_HOLD_MS = 14_500

const OF_WEBHOOK = { organisationId: ORGANISATION, webhookId: WEBHOOK }
const RETRIED_STATES = DELIVERY_STATES.filter((state) => state !== 'completed')

/** The event keys of the deliveries. */
export const EVENT_KEYS = ['invoice:paid', 'customer:created'] as const

const actor: Actor = {
  organisationId: ORGANISATION,
  memberId: 'mem_protocol',
  apiKeyId: null,
  keyHash: null,
  isErasing: false,
  fullAccess: true,
  permissions: [],
  address: '127.0.0.1',
  requestId: 'request',
}

/** What commands need besides the database, and what the explorer does not look at. */
const surroundings = {
  incidentWorkflows: { signal: () => Promise.resolve() },
  logger: silentLogger,
  catalogue: { permissionFor: () => 'webhook:read' },
  urlPolicy: { allowHttp: 'loopback', allowedCidrs: [] },
  webhooks: { changed: () => undefined },
  metrics: { deliveriesStopped: () => undefined },
} as const

/** What a transaction leads to: the rows, and what it returned. */
export type Done<Result> = { image: Image; result: Result }

/** The transactions of the product, each with the statements that it ships. */
export function createProduct(database: ExplorerDatabase, followAfterMs: number | null) {
  const locks = createWebhookLocks()

  const keyOf = ({ delivery, number }: Pick<Run, 'delivery' | 'number'>) => ({
    organisationId: ORGANISATION,
    deliveryId: deliveryId(delivery),
    number,
  })

  function run<Result>(
    { image }: Pick<State, 'image'>,
    name: string,
    work: (db: DataSource) => Promise<Result>,
  ): Promise<Done<Result>> {
    return database.run(image, name, work)
  }

  function underLock<Result>(
    state: Pick<State, 'image'>,
    name: string,
    work: (manager: EntityManager) => Promise<Result>,
  ): Promise<Done<Result>> {
    return run(state, name, (dataSource) => transactOnWebhook({ dataSource, locks }, WEBHOOK, work))
  }

  return {
    /** `begins`: the process has a slot for it. */
    commit(state: State, delivery: number, begins: boolean, sweepAfterMs: number) {
      const event = {
        id: eventId(delivery),
        organisationId: ORGANISATION,
        key: EVENT_KEYS[delivery]!,
        body: Buffer.from('{}'),
        emittedAt: new Date(NOW),
        traceId: 'trace',
        webhookId: null,
      }
      const rooms = { inAll: 1_000, defaultRoom: begins ? 1 : 0, webhooks: [] }
      const reserved = { rooms, sweepAfterMs, leaseMs: LEASE_MS }
      return run(state, `commit ${delivery} ${begins} ${sweepAfterMs}`, async (db) => {
        await commitEvents(db, [event], reserved)
      })
    },

    /** Returns the runs of the attempt, or null where the row was not claimed. */
    claim(state: State, by: Pick<Run, 'owner' | 'delivery' | 'number' | 'by'>) {
      const claimed = { ...keyOf(by), owner: by.owner, isWorkflow: by.by === 'worker' }
      return run(state, `claim ${JSON.stringify(by)}`, async (db) => {
        const [claim] = await claimAttempts(db, [claimed], LEASE_MS)
        return claim?.runs ?? null
      })
    },

    release(state: State, { owner, delivery }: Run, hasPosted: boolean) {
      return run(state, `release ${delivery} ${owner} ${hasPosted}`, (db) =>
        releaseRuns(db, [{ deliveryId: deliveryId(delivery), owner, hasPosted }]),
      )
    },

    renew(state: State, { owner, delivery }: Run) {
      return run(state, `renew ${delivery} ${owner}`, (db) =>
        renewLeases(db, [{ deliveryId: deliveryId(delivery), owner }], LEASE_MS),
      )
    },

    /** Records an attempt as a process does; null where its failure does not count. */
    async record(
      state: State,
      { delivery, number, owner, hasSucceeded }: Run,
    ): Promise<Done<Outcome | null>> {
      const name = `record ${delivery} ${number} ${owner} ${hasSucceeded} ${followAfterMs}`
      const record = {
        ...keyOf({ delivery, number }),
        owner,
        trigger: 'schedule' as const,
        url: 'https://receiver.example.com/',
        startedAt: new Date(NOW),
        durationMs: 1,
        failureCode: hasSucceeded ? null : ('http_status' as const),
        statusCode: hasSucceeded ? 200 : 500,
        error: null,
        response: null,
      }
      const next = stateAfterAttempt(hasSucceeded, number)
      if (next === 'completed' && number === 1) {
        const first = await run(state, `first ${name}`, (db) =>
          recordFirstSuccesses(db, [record], followAfterMs),
        )
        if (first.result[0] === true)
          return { image: first.image, result: { state: next, attempts: number, dueInMs: 0 } }
      }
      const ended = {
        ...record,
        next,
        dueInMs: waitAfterAttempt(number),
      }
      const { image, result } = await underLock(state, name, async (manager) => {
        const [recorded] = await recordAttempts(manager, OF_WEBHOOK, [ended], followAfterMs)
        return recorded!.result !== null
      })
      return { image, result: result || hasSucceeded ? outcomeOf({ image }, delivery) : null }
    },

    requestRetry(state: State, deliveries: readonly number[]): Promise<Done<RequestedRetry[]>> {
      const ids = deliveries.map(deliveryId)
      return underLock(state, `retry ${deliveries.join()}`, (manager) =>
        requestRetries(manager, { ...OF_WEBHOOK, ids, states: RETRIED_STATES }),
      )
    },

    async discard(state: State, delivery: number): Promise<Done<number>> {
      const { image, result } = await underLock(state, `discard ${delivery}`, (manager) =>
        closeAfterDiscard(manager, OF_WEBHOOK, async () => {
          const of = { ...OF_WEBHOOK, ids: [deliveryId(delivery)] }
          return (await discard(manager, of)).length
        }),
      )
      return { image, result: result.result }
    },

    changeWebhook(
      state: State,
      change: { enabled: boolean; keys: readonly string[] },
    ): Promise<Done<unknown>> {
      const { enabled, keys } = change
      return run(state, `change ${JSON.stringify(change)}`, async (dataSource) => {
        const changes = { enabled, subscribedEventKeys: [...keys] }
        await updateWebhook({ ...surroundings, dataSource, locks }, actor, WEBHOOK, changes)
      })
    },

    deleteWebhook(state: State): Promise<Done<unknown>> {
      return run(state, 'delete', (dataSource) =>
        deleteWebhook({ ...surroundings, dataSource, locks }, actor, WEBHOOK),
      )
    },

    /** What a run does whose claim was refused because the webhook takes no such delivery. */
    stop(state: State): Promise<Done<unknown>> {
      return underLock(state, 'stop', (manager) => stopUnwanted(manager, OF_WEBHOOK))
    },

    /** The first transaction of an erasure: the payload is gone. */
    erase(state: State, delivery: number): Promise<Done<unknown>> {
      const of = { organisationId: ORGANISATION, eventId: eventId(delivery) }
      return run(state, `erase ${delivery}`, async (db) => {
        await eraseBody(db, { ...of, by: actor.memberId })
        await markErased(db, of)
      })
    },

    /** The second one: what is open of its deliveries is stopped. */
    async stopErased(state: State, delivery: number): Promise<Done<number>> {
      const { image, result } = await underLock(state, `stop erased ${delivery}`, (manager) =>
        stopUnwanted(manager, OF_WEBHOOK, eventId(delivery)),
      )
      return { image, result: result.stopped }
    },

    markStarted(state: State, delivery: number): Promise<Done<unknown>> {
      return run(state, `mark ${delivery}`, (db) => markWorkflowsStarted(db, [deliveryId(delivery)]))
    },

    /** Returns false where the row went on. */
    sweepLater(
      state: State,
      swept: { delivery: number; seenInMs: number; inMs: number | null; isPaused: boolean },
    ) {
      const { delivery, seenInMs, inMs, isPaused } = swept
      const now = Date.parse(NOW)
      return run(state, `sweep ${JSON.stringify(swept)}`, async (db) => {
        const row = { deliveryId: deliveryId(delivery), sweepAt: new Date(now + seenInMs) }
        const [set] = await sweepLater(db, [{ ...row, inMs, pausedSince: isPaused ? new Date(NOW) : null }])
        return set !== undefined
      })
    },

    sweepEverything(state: State): Promise<Done<unknown>> {
      return run(state, 'sweep everything', (db) => sweepDeliveries(db))
    },
  }
}

export type Product = ReturnType<typeof createProduct>

/** How the row stands, as an activity reports it. */
export function outcomeOf(state: Pick<State, 'image'>, delivery: number): Outcome {
  const row = rowOf(state, delivery)!
  const found = String(row['state'])
  const isFinal = found === 'completed' || found === 'failed' || found === 'stopped'
  const dueAt = row['next_attempt_at']
  return {
    state: isFinal ? found : 'waiting',
    attempts: Number(row['attempts']),
    dueInMs: typeof dueAt === 'number' ? dueAt : 0,
  }
}

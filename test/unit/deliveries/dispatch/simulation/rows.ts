import { randomUUID } from 'node:crypto'
import type { DeliveryRows } from '../../../../../src/deliveries/dispatch/delivery-rows.ts'
import { SWEEP_DELAY_MS, START_SWEEP_DELAY_MS } from '../../../../../src/deliveries/protocol/sweep.ts'
import type { Claim } from '../../../../../src/deliveries/protocol/claim.ts'
import type { CommittedDelivery, Rooms } from '../../../../../src/deliveries/protocol/commit-events.ts'
import type { Random, VirtualTime } from './virtual-time.ts'

const LEASE_MS = 20_000

/** A row, with what the checks of the simulation need besides. */
export type Row = {
  deliveryId: string
  webhookId: string
  state: 'pending' | 'in_progress' | 'waiting' | 'completed' | 'failed'
  attempts: number
  runs: number
  owner: string | null
  leaseUntilMs: number
  dueAtMs: number
  sweepAtMs: number | null
  hasWorkflow: boolean
  createdAtMs: number
  /** When its first POST began. */
  beganAtMs: number | null
  /** When it was claimed by the run that owns it, by which process, and whether that has begun its POST. */
  claim: { atMs: number; processId: number; hasBegun: boolean } | null
  /** A process was lost with it, or an answer about it: it may be posted twice. */
  isFaulty: boolean
  /** The row was left to a process, until then. */
  heldUntilMs: number
}

/** The statements, as they are carried out at one instant. */
type Statements = {
  [Name in keyof DeliveryRows]: (
    ...parameters: Parameters<DeliveryRows[Name]>
  ) => Awaited<ReturnType<DeliveryRows[Name]>>
}

/** Of all events. */
export const AUDIENCE = { organisationId: 'org', key: 'invoice:paid', webhookId: null }

/** The table `delivery`, and the statements of the protocol on it, as far as the dispatcher needs them. */
export function createTable(time: VirtualTime) {
  const table = new Map<string, Row>()
  const isFinal = ({ state }: Row): boolean => state === 'completed' || state === 'failed'
  const label = ({ deliveryId, webhookId }: Row) => ({
    deliveryId,
    webhookId,
    organisationId: AUDIENCE.organisationId,
    eventKey: AUDIENCE.key,
    url: 'https://receiver.example.com/',
  })
  const found = (row: Row) => ({
    ...label(row),
    attempts: row.attempts,
    nextAttemptAt: row.attempts === 0 ? null : new Date(row.dueAtMs),
    dueInMs: row.attempts === 0 ? 0 : Math.max(0, row.dueAtMs - time.nowMs()),
    sweepAt: new Date(row.sweepAtMs ?? 0),
  })

  /** Webhook by webhook in turn, of each those that are due longest. */
  function inTurn(isWanted: (row: Row) => boolean, limit: number, roomOf: (webhookId: string) => number) {
    const perWebhook = new Map<string, Row[]>()
    for (const row of table.values()) {
      if (isFinal(row) || !isWanted(row) || row.sweepAtMs === null || row.sweepAtMs >= time.nowMs()) continue
      const rows = perWebhook.get(row.webhookId)
      if (rows === undefined) perWebhook.set(row.webhookId, [row])
      else rows.push(row)
    }
    return [...perWebhook]
      .flatMap(([webhookId, rows]) =>
        rows
          .sort((a, b) => a.sweepAtMs! - b.sweepAtMs!)
          .slice(0, Math.max(0, roomOf(webhookId)))
          .map((row, place) => ({ row, place })),
      )
      .sort((a, b) => a.place - b.place || a.row.sweepAtMs! - b.row.sweepAtMs!)
      .slice(0, limit)
      .map(({ row }) => row)
  }

  function claimOf(row: Row, claimedAtMs: number): Claim {
    return {
      owner: row.owner!,
      claimedAtMs,
      runs: row.runs,
      isRequested: false,
      ageMs: time.nowMs() - row.createdAtMs,
      webhookId: row.webhookId,
      eventKey: AUDIENCE.key,
      traceId: 'trace',
      url: 'https://receiver.example.com/',
      secret: null,
      body: Buffer.alloc(0),
    }
  }

  function take(row: Row, owner: string, processId: number, isWorkflow: boolean): void {
    if (row.state === 'in_progress') row.isFaulty = true
    row.state = 'in_progress'
    row.runs++
    row.owner = owner
    row.leaseUntilMs = time.nowMs() + LEASE_MS
    row.hasWorkflow ||= isWorkflow
    row.sweepAtMs = row.leaseUntilMs + (row.hasWorkflow ? SWEEP_DELAY_MS : 0)
    row.claim = { atMs: time.nowMs(), processId, hasBegun: isWorkflow }
  }

  return {
    table,
    isFinal,
    label,
    commit(
      webhookIds: readonly string[],
      rooms: Rooms,
      sweepAfterMs: number,
      claimedAtMs: number,
      processId: number,
    ) {
      const listed = new Map(rooms.webhooks.map(({ webhookId, room }) => [webhookId, room]))
      const places = new Map<string, number>()
      let left = rooms.inAll
      return webhookIds.map((webhookId): CommittedDelivery => {
        const place = (places.get(webhookId) ?? 0) + 1
        places.set(webhookId, place)
        const begins = place <= (listed.get(webhookId) ?? rooms.defaultRoom) && left-- > 0
        const row: Row = {
          deliveryId: randomUUID(),
          webhookId,
          state: 'pending',
          attempts: 0,
          runs: 0,
          owner: null,
          leaseUntilMs: 0,
          dueAtMs: 0,
          sweepAtMs: time.nowMs() + sweepAfterMs,
          hasWorkflow: false,
          createdAtMs: time.nowMs(),
          beganAtMs: null,
          claim: null,
          isFaulty: false,
          heldUntilMs: time.nowMs() + sweepAfterMs,
        }
        table.set(row.deliveryId, row)
        if (begins) take(row, randomUUID(), processId, false)
        const claim = begins ? claimOf(row, claimedAtMs) : null
        return { ...found(row), claim, heldUntilMs: claimedAtMs + sweepAfterMs }
      })
    },
    /** The statements of one process. */
    statements(processId: number): Statements {
      return {
        findUnstarted: ({ limit, rooms, defaultRoom }) => {
          const listed = new Map(rooms.map(({ webhookId, room }) => [webhookId, room]))
          const roomOf = (webhookId: string): number => listed.get(webhookId) ?? defaultRoom
          return inTurn((row) => !row.hasWorkflow, limit, roomOf).map(found)
        },
        claim: (runs) =>
          runs.map(({ deliveryId, number, owner, isWorkflow }) => {
            const row = table.get(deliveryId)!
            const isFree =
              row.state === 'pending' ||
              (row.state === 'waiting' && row.dueAtMs <= time.nowMs() + 3) ||
              (row.state === 'in_progress' && row.leaseUntilMs < time.nowMs())
            if (isFinal(row) || row.attempts !== number - 1 || !isFree) return null
            take(row, owner, processId, isWorkflow)
            return claimOf(row, time.nowMs())
          }),
        release: (runs) => {
          for (const { deliveryId, owner } of runs) {
            const row = table.get(deliveryId)!
            if (row.state !== 'in_progress' || row.owner !== owner) continue
            row.runs--
            const rest = row.attempts === 0 ? 'pending' : 'waiting'
            row.state = row.runs > 0 ? 'in_progress' : rest
            row.leaseUntilMs = time.nowMs() - 1
            row.sweepAtMs = time.nowMs() + (row.hasWorkflow ? SWEEP_DELAY_MS : 0)
            row.claim = null
          }
        },
        sweepLater: (rows) =>
          rows.flatMap(({ deliveryId, sweepAt, inMs }) => {
            const row = table.get(deliveryId)!
            if (row.sweepAtMs === null || new Date(row.sweepAtMs).getTime() !== sweepAt.getTime()) return []
            // Whole milliseconds, as in the database.
            row.sweepAtMs = inMs === null ? null : Math.floor(time.nowMs() + inMs)
            row.heldUntilMs = row.sweepAtMs ?? 0
            return [{ deliveryId, sweepAt: new Date(row.sweepAtMs ?? 0) }]
          }),
        markWorkflowsStarted: (ids) => {
          for (const id of ids) {
            const row = table.get(id)!
            if (row.hasWorkflow) continue
            row.hasWorkflow = true
            if (row.state === 'pending') row.sweepAtMs = time.nowMs() + SWEEP_DELAY_MS
            if (row.state === 'waiting') row.sweepAtMs = Math.max(row.dueAtMs, time.nowMs()) + SWEEP_DELAY_MS
          }
        },
        findFirstAttempts: (ids) =>
          new Map(
            ids.map((id) => {
              const row = table.get(id)!
              if (row.attempts === 0 && !isFinal(row)) return [id, 'open']
              return [id, row.state === 'completed' ? 'completed' : 'other']
            }),
          ),
        findOverdue: (limit) =>
          inTurn(
            (row) => row.hasWorkflow,
            limit,
            () => limit,
          ).map((row) => ({
            ...found(row),
            state: row.state,
            retryRequested: false,
            pausedSince: null,
            lateMs: Math.max(0, time.nowMs() - Math.max(row.dueAtMs, row.createdAtMs)),
          })),
        findOwedSignals: () => [],
        findOwedWorkflows: () => [],
      }
    },
    /** Records the end of a POST. Returns the row; null where the failure does not count. */
    record(
      deliveryId: string,
      number: number,
      owner: string,
      succeeded: boolean,
      waitMs: number,
    ): Row | null {
      const row = table.get(deliveryId)!
      if (!succeeded && (row.state !== 'in_progress' || row.owner !== owner || row.attempts !== number - 1))
        return null
      if (isFinal(row)) return row
      row.attempts = Math.max(row.attempts, number)
      Object.assign(row, { runs: 0, owner: null, claim: null })
      row.state = succeeded ? 'completed' : 'waiting'
      row.dueAtMs = time.nowMs() + waitMs
      row.sweepAtMs = row.dueAtMs + (row.hasWorkflow ? SWEEP_DELAY_MS : START_SWEEP_DELAY_MS)
      if (succeeded) row.sweepAtMs = null
      return row
    },
  }
}

/** Has statements take a while, and now and then fail: before they are carried out, or after, so that the answer is lost. */
export function throughNetwork(
  rows: Statements,
  {
    time,
    random,
    isAlive,
    isFailing,
    onLost,
  }: {
    time: VirtualTime
    random: Random
    isAlive: () => boolean
    isFailing: () => boolean
    onLost: (parameters: unknown) => void
  },
): DeliveryRows {
  const call =
    <Given extends unknown[], Result>(statement: (...parameters: Given) => Result) =>
    async (...parameters: Given): Promise<Result> => {
      await time.sleep(random.between(0.5, 15))
      if (!isAlive()) return never()
      const fails = isFailing() && random.chance(0.5)
      if (fails && random.chance(0.5)) throw new Error('the database is away')
      const result = statement(...parameters)
      if (fails) onLost(parameters)
      await time.sleep(random.between(0.5, 15))
      if (!isAlive()) return never()
      if (fails) throw new Error('the answer is lost')
      return result
    }
  const statements = Object.fromEntries(
    Object.entries(rows).map(([name, statement]) => [name, call(statement as () => unknown)]),
  ) as unknown as DeliveryRows
  return {
    ...statements,
    async claim(runs) {
      const claimedAtMs = time.nowMs()
      const claims = await statements.claim(runs)
      return claims.map((claim) => claim && { ...claim, claimedAtMs })
    },
  }
}

/** What a process that has died waits for. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined)
}

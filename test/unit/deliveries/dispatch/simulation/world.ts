import { randomUUID } from 'node:crypto'
import { createEndpoints } from '../../../../../src/deliveries/attempt/endpoint-concurrency.ts'
import type { Claim } from '../../../../../src/deliveries/protocol/claim.ts'
import type { MakeAttempt, OnAttempt } from '../../../../../src/deliveries/attempt/make-attempt.ts'
import type {
  createDispatcher,
  Dispatcher,
  FirstAttemptMode,
} from '../../../../../src/deliveries/dispatch/dispatcher.ts'
import { createDeliveryRecovery } from '../../../../../src/deliveries/recovery/recover-deliveries.ts'
import type { AttemptOutcome } from '../../../../../src/domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../../../../../src/domain/retry-schedule.ts'
import { createMetrics } from '../../../../../src/observability/metrics.ts'
import { createShutdown } from '../../../../../src/shutdown.ts'
import { type Timers } from '../../../../../src/timers.ts'
import { silentLogger } from '../../../../helpers/silent-logger.ts'
import { createFakeCluster } from './temporal.ts'
import { AUDIENCE, createTable, never, throughNetwork, type Row } from './rows.ts'
import { createRandom, createVirtualTime } from './virtual-time.ts'

const ATTEMPT_TIMEOUT_MS = 15_000

/** No POST begins so long after its claim. */
const MAX_CLAIM_AGE_MS = 1_000

/** The same, with the check that releases it, its batch and its statement. */
const MAX_HELD_MS = MAX_CLAIM_AGE_MS + 250 + 50 + 50

/** After the database failed, a release is tried again so much later. */
const RELEASE_RETRY_MS = 1_100

/** How an endpoint answers from an instant on. `hangs`: not at all. */
export type Behaviour = 'fast' | 'refuses' | 'slow' | 'hangs'

/** One process. Its worker makes attempts by its dispatcher. */
export type SimulatedProcess = {
  id: number
  isAlive: boolean
  /** False in a process without a worker. */
  hasWorker: boolean
  dispatcher: Dispatcher
  /** Settles when the process dies. */
  died: Promise<void>
  publish(webhookIds: readonly string[]): Promise<void>
  change(webhookId: string): void
  die(): void
  stop(): Promise<void>
}

export type World = ReturnType<typeof createWorld>

/** The metrics of all worlds, which are not read. */
const metrics = createMetrics()

/** A database, a Temporal server, endpoints and processes on one virtual clock. */
export function createWorld(options: {
  seed: number
  mode: FirstAttemptMode
  slots: number
  concurrency: number
  create: typeof createDispatcher
}) {
  const random = createRandom(options.seed)
  const time = createVirtualTime()
  const rows = createTable(time)
  const behaviours = new Map<string, Behaviour>()
  const posting = new Map<string, number>()
  const processes: SimulatedProcess[] = []
  const violations: string[] = []
  const state = { isDatabaseFailing: false, isTemporalAway: false, isTemporalSlow: false, posts: 0 }
  const cluster = createFakeCluster({ time, random, state, processes, onStart: checkStart })

  function violate(what: string, row: Row): void {
    violations.push(`${what} (seed ${options.seed}, at ${Math.round(time.nowMs())} ms, ${row.deliveryId})`)
  }

  function checkStart(deliveryId: string, attempt: number): void {
    const row = rows.table.get(deliveryId)!
    if (attempt === 1 && !row.hasWorkflow && !row.isFaulty && row.heldUntilMs < time.nowMs() - 100)
      violate('a workflow is started from memory after its row was left to all', row)
  }

  function durationOf(webhookId: string): number {
    switch (behaviours.get(webhookId) ?? 'fast') {
      case 'fast':
        return random.between(2, 50)
      case 'refuses':
        return random.between(2, 10)
      case 'slow':
        return random.between(1_100, 3_000)
      case 'hangs':
        return Infinity
    }
  }

  /** Sends one POST; checks that it may begin. */
  async function send(row: Row, claimedAtMs: number): Promise<{ succeeded: boolean; isTimeout: boolean }> {
    const { deliveryId, webhookId } = row
    if (time.nowMs() - claimedAtMs >= MAX_CLAIM_AGE_MS) violate('a POST begins too late after its claim', row)
    const others = posting.get(deliveryId) ?? 0
    if (others > 0 && !row.isFaulty) violate('two POSTs at once', row)
    posting.set(deliveryId, others + 1)
    row.beganAtMs ??= time.nowMs()
    if (row.claim !== null) row.claim.hasBegun = true
    state.posts++
    const refuses = behaviours.get(webhookId) === 'refuses'
    const durationMs = Math.min(ATTEMPT_TIMEOUT_MS, durationOf(webhookId))
    await time.sleep(durationMs)
    posting.set(deliveryId, (posting.get(deliveryId) ?? 1) - 1)
    const isTimeout = durationMs >= ATTEMPT_TIMEOUT_MS
    return { succeeded: !isTimeout && !refuses, isTimeout }
  }

  function outcomeOf(row: Row): AttemptOutcome {
    const codes = { attempts: row.attempts, failureCode: null, statusCode: null }
    if (rows.isFinal(row)) return { state: row.state as 'completed' | 'failed', ...codes }
    return {
      state: 'waiting',
      ...codes,
      dueAtMs: row.dueAtMs,
      dueInMs: Math.max(0, row.dueAtMs - time.nowMs()),
    }
  }

  function start(hasWorker = true): SimulatedProcess {
    const id = processes.length
    let die = (): void => undefined
    const died = new Promise<void>((resolve) => (die = resolve))
    const isAlive = (): boolean => process.isAlive
    const timers: Timers = {
      nowMs: () => time.nowMs(),
      after: (ms, run) => time.after(ms, () => isAlive() && run()),
    }
    const statements = throughNetwork(rows.statements(id), {
      time,
      random,
      isAlive,
      isFailing: () => state.isDatabaseFailing,
      onLost: markFaulty,
    })
    const endpoints = createEndpoints({ maxLimit: 50, timers })
    const changedAtMs = new Map<string, number>()
    const webhookChanges = {
      changed: (webhookId: string) => void changedAtMs.set(webhookId, time.nowMs()),
      hasChangedSince: (webhookId: string, sinceMs: number) => (changedAtMs.get(webhookId) ?? -1) >= sinceMs,
    }
    const shutdown = createShutdown(0)

    async function claimRow(deliveryId: string, number: number): Promise<Claim | null> {
      for (;;) {
        const owner = randomUUID()
        const run = { organisationId: 'org', deliveryId, number, owner, isWorkflow: true }
        const [claim] = await statements.claim([run]).catch(() => [null])
        if (claim) return claim
        const row = rows.table.get(deliveryId)!
        if (rows.isFinal(row) || row.attempts !== number - 1 || row.state === 'waiting') return null
        await time.sleep(250)
      }
    }

    const createAttempt =
      (onAttempt: OnAttempt): MakeAttempt =>
      async (request, _signals, inline = null) => {
        const { webhookId, deliveryId, number, queue } = request
        const isOnWrongQueue = queue !== 'slow' && endpoints.health(webhookId) === 'slow'
        const slot =
          inline?.slot ??
          (isOnWrongQueue ? { retryAfterMs: 0 } : await endpoints.acquireSoon(webhookId, deliveryId))
        if ('retryAfterMs' in slot) return { state: 'deferred', delayMs: slot.retryAfterMs }
        const report = (): void => onAttempt({ isInline: inline !== null, webhookId, deliveryId })
        report()
        try {
          const row = rows.table.get(deliveryId)!
          const claimed = inline?.claim ?? (await claimRow(deliveryId, number))
          if (claimed === null) return outcomeOf(row)
          if (inline && webhookChanges.hasChangedSince(webhookId, inline.claim.claimedAtMs))
            violate('a POST begins by a webhook as it was', row)
          slot.begin()
          const { succeeded, isTimeout } = await send(row, claimed.claimedAtMs)
          if (!isAlive()) return await never()
          const waitMs = waitAfterAttempt(number) ?? 0
          slot.release({ succeeded, isTimeout, retry: { deliveryId, inMs: waitMs } })
          report()
          await time.sleep(random.between(1, 20))
          if (!isAlive()) return await never()
          const recorded = rows.record(deliveryId, number, claimed.owner, succeeded, waitMs)
          const outcome = outcomeOf(recorded ?? row)
          return outcome.state === 'waiting' && isTimeout ? { ...outcome, failureCode: 'timeout' } : outcome
        } finally {
          if (isAlive()) {
            slot.release(null)
            report()
          }
        }
      }

    const dispatcher = options.create({
      rows: statements,
      createAttempt,
      endpoints,
      webhookChanges,
      workflows: cluster.workflows,
      mode: options.mode,
      slots: options.slots,
      concurrency: options.concurrency,
      makesAttempts: hasWorker,
      timers,
      logger: silentLogger,
      metrics,
      shutdown,
      isServing: () => !state.isTemporalAway,
    })
    const sweep = createDeliveryRecovery({
      rows: statements,
      workflows: cluster.workflows,
      terminateIfStuck: cluster.terminateIfStuck,
      dispatcher,
      logger: silentLogger,
      metrics,
    })
    async function sweepAgain(): Promise<void> {
      if (!state.isTemporalAway) await Promise.all(sweep.map((part) => part().catch(() => undefined)))
      timers.after(1_000, () => void sweepAgain())
    }
    const publishing = new Set<Promise<void>>()
    async function publish(webhookIds: readonly string[]): Promise<void> {
      const reservation = dispatcher.reserve([AUDIENCE], webhookIds.length)
      const committedAtMs = time.nowMs()
      await time.sleep(random.between(1, 15))
      if (!isAlive()) return
      const { sweepAfterMs } = reservation
      const committed = rows.commit(webhookIds, reservation.rooms, sweepAfterMs, committedAtMs, id)
      await time.sleep(random.between(1, 15))
      if (!isAlive()) return
      reservation.settle()
      dispatcher.start(committed)
    }
    const process: SimulatedProcess = {
      id,
      isAlive: true,
      hasWorker,
      dispatcher,
      died,
      async publish(webhookIds) {
        const published = publish(webhookIds)
        publishing.add(published)
        await published
        publishing.delete(published)
      },
      change: (webhookId) => webhookChanges.changed(webhookId),
      die() {
        process.isAlive = false
        for (const row of rows.table.values()) if (row.claim?.processId === id) row.isFaulty = true
        die()
      },
      async stop() {
        shutdown.begin()
        // As the service does: the requests end beside the dispatcher, and it stops again for what they brought.
        await Promise.all([dispatcher.stop(), ...publishing])
        await dispatcher.stop()
        for (const row of rows.table.values())
          if (row.claim?.processId === id && !row.claim.hasBegun && !row.isFaulty)
            violate('a process stops with a claim that it has not begun', row)
        process.die()
      },
    }
    processes.push(process)
    if (hasWorker) {
      dispatcher.begin()
      void sweepAgain()
    }
    return process
  }

  function markFaulty(parameters: unknown): void {
    for (const given of (parameters as unknown[]).flat())
      if (typeof given === 'object' && given !== null && 'deliveryId' in given) {
        const row = rows.table.get(String(given.deliveryId))
        if (row !== undefined) row.isFaulty = true
      }
  }

  let databaseFailedAtMs = -Infinity

  /** Checks that every process has begun, or released, what it claimed. */
  function checkHeld(): void {
    if (state.isDatabaseFailing) databaseFailedAtMs = time.nowMs()
    for (const row of rows.table.values()) {
      if (row.claim === null || row.claim.hasBegun || row.isFaulty) continue
      if (
        processes[row.claim.processId]?.isAlive === true &&
        time.nowMs() > Math.max(row.claim.atMs + MAX_HELD_MS, databaseFailedAtMs + 500 + RELEASE_RETRY_MS)
      )
        violate('a claimed delivery neither begins nor is released', row)
    }
    time.after(500, checkHeld)
  }
  time.after(500, checkHeld)

  /** Checks what has to hold a while after the last event. */
  function checkAtRest(): void {
    for (const row of rows.table.values()) {
      if (row.beganAtMs === null) violate(`never attempted in ${options.mode}`, row)
      const isLate = !rows.isFinal(row) && row.attempts > 0 && row.dueAtMs < time.nowMs() - 45_000
      if (isLate) violate('an attempt is overdue', row)
    }
    for (const { isAlive, dispatcher } of processes)
      if (isAlive && dispatcher.load().queued > 0) violations.push(`queued at rest (seed ${options.seed})`)
  }

  /** True when nothing can happen any more. */
  function isAtRest(): boolean {
    return [...rows.table.values()].every((row) => rows.isFinal(row))
  }

  return {
    isAtRest,
    time,
    random,
    state,
    behaviours,
    rows,
    processes,
    cluster,
    violations,
    start,
    checkAtRest,
  }
}

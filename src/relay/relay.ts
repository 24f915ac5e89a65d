import type { DataSource } from 'typeorm'
import { isDatabaseUnavailable } from '../db/connection/connection-errors.ts'
import type { Logger } from '../observability/logger.ts'
import type { RelayMetrics } from '../observability/metrics/relay.ts'
import { retryDelayMs } from '../outbound/api-answer.ts'
import { createPollLoop } from '../poll-loop.ts'
import { createRoundRobinQueue } from '../round-robin-queue.ts'
import type { Shutdown } from '../shutdown.ts'
import { onAbort } from '../timers.ts'
import {
  listHeads,
  park,
  postpone,
  purgePublished,
  readWaiting,
  recordPublished,
  type OutboxRow,
} from './outbox.ts'
import type { PublishRow } from './publish-row.ts'
import { openRelaySession, type RelaySession } from './relay-session.ts'

export type Relay = {
  start(): void
  /** Whether it holds its session and reads the outbox, and whether the API took the last event that was tried. */
  state(): { database: 'up' | 'down'; api: 'up' | 'down' }
  /** Begins no further row, and returns when those under way have ended. The shutdown has to have begun. */
  stop(): Promise<void>
}

type Dependencies = {
  dataSource: DataSource
  databaseUrl: string
  publishRow: PublishRow
  /** 0: published rows are deleted at once. */
  keepHours: number
  logger: Logger
  metrics: RelayMetrics
  shutdown: Shutdown
}

/** Finds what no notification told of. */
const INTERVAL_MS = 2_000

/** A pass that ended longer ago means that the outbox is not read. */
const STALLED_AFTER_MS = 15_000

/** Organisations whose rows are published at once, and those that wait for that in this process. */
const CONCURRENT_ORGANISATIONS = 8
const MAX_QUEUED_ORGANISATIONS = 1_000

/** One turn of an organisation: rows, which are read together and recorded together, and time. */
const MAX_TURN_ROWS = 25
const MAX_TURN_MS = 10_000

/** The first delay after a failure; it doubles with each further one. */
const RETRY_DELAY_MS = 1_000

const PURGE_INTERVAL_MS = 60_000
const MAX_PURGED_ROWS = 1_000

/** How a turn ended: rows may be left, none that is due is, or another process has the organisation. */
type Turn = 'more' | 'done' | 'locked'

/**
 * Builds the relay: it publishes the committed rows of the platform's outbox, of each organisation in the order of their
 * ids and by one process at a time.
 */
export function createRelay(dependencies: Dependencies): Relay {
  const { dataSource, databaseUrl, publishRow, keepHours, logger, metrics, shutdown } = dependencies
  const { stopping, cutOff } = shutdown
  let session: RelaySession | null = null
  let passedAtMs = -Infinity
  let purgedAtMs = -Infinity
  let isApiDown = false
  let after = ''
  let cancelRetry: NodeJS.Timeout | undefined
  /** Organisations that are queued or published now; true where rows were seen again meanwhile. */
  const known = new Map<string, boolean>()

  const loop = createPollLoop({ intervalMs: INTERVAL_MS, run: pass, event: 'relay.pass_failed', logger })
  const turns = createRoundRobinQueue<string>({
    concurrency: CONCURRENT_ORGANISATIONS,
    hasRoom: () => true,
    run: runTurn,
  })

  /** Queues the organisations whose first row is due. Returns whether to go on at once. */
  async function pass(): Promise<boolean> {
    const { lost } = await currentSession()
    const isFromStart = after === ''
    const limit = MAX_QUEUED_ORGANISATIONS - turns.size()
    const heads = limit > 0 ? await listHeads(dataSource, { after, limit }) : []
    const isLast = heads.length < limit
    // Another process has published what this one could not.
    if (isFromStart && isLast && heads.length === 0) isApiDown = false
    after = isLast ? '' : (heads.at(-1)?.organisationId ?? after)
    for (const { organisationId, dueInMs } of heads) if (dueInMs === 0) offer(organisationId)
    const nextDueMs = Math.min(...heads.map(({ dueInMs }) => dueInMs).filter((ms) => ms > 0))
    clearTimeout(cancelRetry)
    if (nextDueMs < INTERVAL_MS) cancelRetry = setTimeout(() => loop.wake(), nextDueMs)
    const hasMoreToPurge = await purge()
    lost.throwIfAborted()
    passedAtMs = performance.now()
    return hasMoreToPurge || (!isLast && turns.size() < MAX_QUEUED_ORGANISATIONS)
  }

  async function currentSession(): Promise<RelaySession> {
    if (session?.lost.aborted === false) return session
    session = await openRelaySession(databaseUrl, () => loop.wake())
    session.lost.addEventListener('abort', () => {
      if (stopping.aborted) return
      logger.warn({ event: 'relay.session_lost' })
      loop.wake()
    })
    return session
  }

  function offer(organisationId: string): void {
    if (stopping.aborted) return
    const isNew = !known.has(organisationId)
    known.set(organisationId, !isNew)
    if (isNew) turns.add(organisationId, organisationId)
  }

  async function runTurn(organisationId: string): Promise<void> {
    // It goes on with what was committed from here.
    known.set(organisationId, false)
    const turn = await takeTurn(organisationId).catch((error: unknown): Turn => {
      const fields = { event: 'relay.turn_failed', organisationId, err: error }
      if (isDatabaseUnavailable(error) || stopping.aborted) logger.warn(fields)
      else logger.error(fields)
      return 'locked'
    })
    const wasSeenAgain = known.get(organisationId) === true
    known.delete(organisationId)
    if (turn === 'more' || (turn === 'done' && wasSeenAgain)) offer(organisationId)
    // The queue was full, and more organisations may wait in the outbox.
    if (after !== '' && turn !== 'locked' && turns.size() === 0) loop.wake()
  }

  async function takeTurn(organisationId: string): Promise<Turn> {
    const held = session
    if (held === null || held.lost.aborted || stopping.aborted) return 'locked'
    if (!(await held.lock(organisationId))) return 'locked'
    try {
      const rows = await readWaiting(dataSource, organisationId, MAX_TURN_ROWS)
      const published: string[] = []
      try {
        return await publishInOrder(organisationId, rows, published, held.lost)
      } finally {
        // An event that was accepted is recorded also after a loss of the lock: its key keeps a second one out.
        if (published.length > 0) await recordPublished(dataSource, published, { keep: keepHours > 0 })
      }
    } finally {
      await held.unlock(organisationId)
    }
  }

  /** The first row that fails holds up those behind it. */
  async function publishInOrder(
    organisationId: string,
    rows: readonly OutboxRow[],
    published: string[],
    lost: AbortSignal,
  ): Promise<Turn> {
    const untilMs = performance.now() + MAX_TURN_MS
    for (const row of rows) {
      if (row.isPostponed) return 'done'
      if (stopping.aborted || lost.aborted || performance.now() > untilMs) return 'more'
      const beganAtMs = performance.now()
      const cuts = [lost, cutOff]
      const cutting = new AbortController()
      const release = onAbort(cuts, (reason) => cutting.abort(reason))
      const outcome = await publishRow(organisationId, row, cutting.signal).finally(release)
      // A call that was cut off says nothing about the row, nor about the API.
      if (outcome.kind !== 'published' && cuts.some(({ aborted }) => aborted)) return 'locked'
      isApiDown = outcome.kind === 'failed' && outcome.isApiDown
      metrics.rowTried(outcome.kind, performance.now() - beganAtMs)
      const fields = { organisationId, id: row.id, eventKey: row.event }
      if (outcome.kind === 'published') {
        published.push(row.id)
        if (row.isLate) warnOfLate(fields, outcome.eventId)
        const { eventId } = outcome
        logger.info({ event: 'relay.published', ...fields, eventId })
      } else if (outcome.kind === 'refused') {
        const { error } = outcome
        await park(dataSource, row.id, error)
        logger.warn({ event: 'relay.parked', ...fields, error })
      } else {
        const { error, retryAfterMs } = outcome
        const delays = { retryMs: RETRY_DELAY_MS, failures: row.attempts, retryAfterMs }
        const delayMs = Math.ceil(retryDelayMs(delays, Math.random()))
        await postpone(dataSource, row.id, { error, delayMs })
        logger.warn({ event: 'relay.postponed', ...fields, error, delayMs, attempts: row.attempts + 1 })
        return 'done'
      }
    }
    return rows.length === MAX_TURN_ROWS ? 'more' : 'done'
  }

  function warnOfLate(fields: object, eventId: string): void {
    logger.warn(
      { event: 'relay.late', ...fields, eventId },
      'Published more than 24 hours after it was inserted. If an earlier try was accepted and its answer lost, this is a second event: its idempotency key had expired.',
    )
  }

  async function purge(): Promise<boolean> {
    if (performance.now() < purgedAtMs + PURGE_INTERVAL_MS) return false
    const deleted = await purgePublished(dataSource, { hours: keepHours, limit: MAX_PURGED_ROWS })
    if (deleted === MAX_PURGED_ROWS) return true
    purgedAtMs = performance.now()
    return false
  }

  return {
    start: () => loop.start(),
    state() {
      const hasSession = session?.lost.aborted === false
      const isReading = hasSession && performance.now() - passedAtMs < STALLED_AFTER_MS
      return { database: isReading ? 'up' : 'down', api: isApiDown ? 'down' : 'up' }
    },
    async stop() {
      clearTimeout(cancelRetry)
      await loop.stop()
      turns.drain()
      await turns.idle()
      await session?.end()
    },
  }
}

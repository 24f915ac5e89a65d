import type { DataSource } from 'typeorm'
import { isDatabaseAway } from '../db/connection-errors.ts'
import { readEvents, type StreamedEvent } from '../db/queries/event-stream.ts'
import type { Logger } from '../logger.ts'
import { createSettled, DatabaseWentBack, type Settled } from './settled.ts'
import { eventFrame } from './sse-frames.ts'
import { noStreamNow } from './stream-problems.ts'

/** Whoever takes part in the feed; it is offered every event of its organisation from where it joined. */
type Member = { organisationId: string; offer(event: StreamedEvent, frame: Buffer): void }

/** Reads the events of this process's streams, once for all of them. */
export type Feed = {
  /** Begins to read where it does not yet; throws 503 when the database does not say in time where it stands. */
  start(): Promise<void>
  /**
   * A number between what had been published when this was called and what is published when it returns. While a
   * transaction holds the numbers up it is a lower one. To be called after `start`.
   */
  present(): Promise<number>
  /** Members have been offered everything up to this number, or are just going to be. */
  position(): number
  /** Offers everything after `position()`: who is further back reads by itself up to there, and then joins. */
  join(member: Member): void
  leave(member: Member): void
  /** Resolves when it has stopped reading, which it does by itself when nobody wants it. */
  ended(): Promise<void>
}

/** How soon an event is noticed; and how soon it is looked again for the end of a transaction that is on its way. */
const POLL_MS = 50
const POLL_WAITING_MS = 10

/** Numbers read at once: what one reading may hold in memory is this many bodies. */
const RANGE = 200

const PAUSE_AFTER_FAULT_MS = 500
const PATIENCE_MS = 2_000

/** A range that members are owed, also when reading it fails at first. */
type Range = { after: number; upTo: number }

/**
 * `isWanted`: whether any stream is open or about to be. `beforeReading` runs before each look at the database, and
 * nothing is read when it throws. `onWentBack` is told when the numbers begin anew.
 */
export function createFeed(dependencies: {
  dataSource: DataSource
  logger: Logger
  isWanted: () => boolean
  beforeReading: () => Promise<void>
  onWentBack: () => void
}): Feed {
  const { dataSource, logger, isWanted, beforeReading, onWentBack } = dependencies
  const members = new Map<string, Set<Member>>()
  let running: Promise<void> | null = null
  let position: number | null = null
  let awake: (() => void) | null = null
  /** Who wants to know the present: asked since the last look began, and to be told by the one under way. */
  let asking = new Set<(present: number) => void>()
  let toBeTold = new Set<(present: number) => void>()

  async function run(): Promise<void> {
    let settled = createSettled({ dataSource, logger })
    let owed: Range | null = null
    let isFailing = false
    while (isWanted()) {
      try {
        await beforeReading()
        owed ??= nextRange(await look(settled))
        if (owed !== null) await read(owed)
        isFailing = false
        const wasOwed = owed !== null
        owed = null
        await pause(pauseMs(settled, wasOwed))
      } catch (error) {
        if (!isFailing) report(error)
        isFailing = true
        if (error instanceof DatabaseWentBack) {
          settled = createSettled({ dataSource, logger })
          position = null
          onWentBack()
        }
        await pause(PAUSE_AFTER_FAULT_MS)
      }
    }
    position = null
    running = null
  }

  /** A look that began before somebody asked may know less than what had been published by then. */
  async function look(settled: Settled): Promise<number | null> {
    if (!settled.isWaiting()) {
      toBeTold = new Set([...toBeTold, ...asking])
      asking = new Set()
    }
    const present = await settled.look()
    position ??= present
    if (present === null || settled.isWaiting()) return present
    for (const tell of toBeTold) tell(present)
    toBeTold.clear()
    return present
  }

  /** The position moves before the range is read: who joins meanwhile has read it by itself. */
  function nextRange(settled: number | null): Range | null {
    if (settled === null || position === null) return null
    if (position >= settled) return null
    const after = position
    position = Math.min(settled, after + RANGE)
    return { after, upTo: position }
  }

  async function read(range: Range): Promise<void> {
    if (members.size === 0) return
    for (const event of await readEvents(dataSource, [...members.keys()], range)) {
      const frame = eventFrame(event)
      for (const member of members.get(event.organisationId) ?? []) member.offer(event, frame)
    }
  }

  function pauseMs(settled: Settled, wasOwed: boolean): number {
    if (wasOwed || asking.size > 0) return 0
    return settled.isWaiting() ? POLL_WAITING_MS : POLL_MS
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      awake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Null when it cannot be told in time. */
  function askForPresent(): Promise<number | null> {
    return new Promise((resolve) => {
      const tell = (present: number | null): void => {
        clearTimeout(timer)
        asking.delete(tell)
        toBeTold.delete(tell)
        resolve(present)
      }
      const timer = setTimeout(() => tell(null), PATIENCE_MS)
      asking.add(tell)
      awake?.()
    })
  }

  function report(error: unknown): void {
    if (error instanceof DatabaseWentBack) logger.error({ event: 'stream.went_back' }, 'stream.went_back')
    else if (isDatabaseAway(error)) logger.warn({ event: 'stream.not_read', err: error }, 'stream.not_read')
    else logger.error({ event: 'stream.not_read', err: error }, 'stream.not_read')
  }

  function known(): number {
    if (position === null) throw new Error('the feed has not begun')
    return position
  }

  return {
    async start() {
      running ??= run()
      if (position === null) await askForPresent()
      if (position === null) throw noStreamNow('The database does not say in time what was published last.')
    },
    present: async () => (await askForPresent()) ?? known(),
    position: known,
    join(member) {
      const others = members.get(member.organisationId)
      if (others === undefined) members.set(member.organisationId, new Set([member]))
      else others.add(member)
    },
    leave(member) {
      const others = members.get(member.organisationId)
      others?.delete(member)
      if (others?.size === 0) members.delete(member.organisationId)
    },
    ended: async () => running ?? undefined,
  }
}

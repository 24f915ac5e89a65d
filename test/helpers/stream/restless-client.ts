import { expect } from 'chai'
import type { Dice } from '../../faults/play/dice.ts'
import { eventually } from '../eventually.ts'
import { readStream, type StreamOptions, type StreamReader } from './stream-reader.ts'
import type { HistoricEvent } from './event-history.ts'

export type RestlessClient = {
  /** Ids of all events that it received over all its connections, in order; `gap` for a gap. */
  readonly received: readonly string[]
  /** How many events had been begun when it first had a position, or should have had one. */
  since(): number
  /** Whether its first stream had a position in time. */
  hadPosition(): boolean
  /** Has it connect a last time and stay. */
  settle(): Promise<void>
  close(): Promise<void>
}

/** How long a stream may take to send a position. */
const POSITION_TIMEOUT_MS = 1_000

/** For how many steps of the publisher it stays connected or away, at most. */
const MAX_STEPS = 15

/**
 * Starts a client that connects and disconnects at random, to one of `urls`, and reconnects with the last event id that
 * an `EventSource` would have; often before it has received an event. `steps` and `begun` count what the publisher did.
 */
export function startRestlessClient(options: {
  urls: readonly string[]
  organisationId: string
  stream: Pick<StreamOptions, 'apiKey' | 'query'>
  dice: Dice
  steps: () => number
  begun: () => number
}): RestlessClient {
  const { urls, organisationId, stream, dice, steps, begun } = options
  const received: string[] = []
  let lastEventId: string | null = null
  let since = Infinity
  let hadPosition = false
  let connections = 0
  let isSettling = false
  let reader: StreamReader | null = null

  async function connect(): Promise<void> {
    connections++
    const opened = await readStream(dice.pick(urls), organisationId, {
      ...stream,
      ...(lastEventId === null ? {} : { lastEventId }),
      onEvent: ({ id = '', event }) => void received.push(event === 'gap' ? 'gap' : id),
    })
    expect(opened.status).to.equal(200)
    reader = opened
    if (connections > 1) return
    hadPosition = await eventually(
      () => expect(opened.lastEventId()).to.not.equal(null),
      POSITION_TIMEOUT_MS,
    ).then(
      () => true,
      () => false,
    )
    since = begun()
  }

  async function disconnect(): Promise<void> {
    await reader?.close()
    lastEventId = reader?.lastEventId() ?? lastEventId
  }

  async function someSteps(): Promise<void> {
    const until = steps() + dice.int(0, MAX_STEPS)
    await eventually(() => expect(isSettling || steps() >= until).to.equal(true), 60_000)
  }

  async function run(): Promise<void> {
    while (!isSettling) {
      await connect()
      await someSteps()
      await disconnect()
      await someSteps()
    }
    await connect()
  }

  const running = run()
  // Reported by `settle`.
  running.catch(() => undefined)
  return {
    received,
    since: () => since,
    hadPosition: () => hadPosition,
    async settle() {
      isSettling = true
      await running
    },
    async close() {
      isSettling = true
      await running.catch(() => undefined)
      await disconnect()
    },
  }
}

/**
 * Compares what was committed with what one client received, and returns what is wrong: a visible event that it neither
 * received nor has a gap for, one that came twice, out of order, or that it may not see. `since`: how many events had been
 * begun when the client first had a position.
 */
export function streamFaults(
  events: readonly HistoricEvent[],
  keys: ReadonlySet<string>,
  { received, since }: { received: readonly string[]; since: number },
): string[] {
  const byId = new Map(events.map((event) => [event.id, event]))
  const faults: string[] = []
  const seen = new Set<string>()
  let newest = -Infinity
  // The sequence numbers that a gap stands for: from the event before it to the event after it.
  const gaps: { after: number; before: number }[] = []
  for (const id of received) {
    if (id === 'gap') {
      gaps.push({ after: newest, before: Infinity })
      continue
    }
    const event = byId.get(id)
    if (event?.state !== 'committed' || !keys.has(event.key)) faults.push(`${id} was not to be sent`)
    if (seen.has(id)) faults.push(`${id} came twice`)
    const sequence = event?.sequence ?? newest
    if (sequence < newest) faults.push(`${id} came out of order`)
    for (const gap of gaps) if (gap.before === Infinity) gap.before = sequence
    seen.add(id)
    newest = Math.max(newest, sequence)
  }
  const isInGap = ({ sequence }: HistoricEvent) =>
    gaps.some(({ after, before }) => sequence > after && sequence < before)
  for (const event of events.slice(since)) {
    if (event.state !== 'committed' || !keys.has(event.key) || seen.has(event.id) || isInGap(event)) continue
    faults.push(`${event.id} (${event.key}, number ${event.sequence}) is lost`)
  }
  return faults
}

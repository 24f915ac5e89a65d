import { setTimeout as delay } from 'node:timers/promises'
import type { EventSourceMessage } from 'eventsource-parser'
import { readStream, type StreamOptions } from './stream-reader.ts'

export type SteadyReader = {
  /** Ids of all events that it got, over all its connections; `gap` for a gap. */
  ids: string[]
  connections(): number
  stop(): Promise<void>
}

/** How many events it reads before it goes and comes back, at most. */
const LONGEST_LIFE = 60

const PAUSE_AFTER_FAILURE_MS = 50

/**
 * A reader that never gives up: after some events, or when its stream breaks, it connects again to one of
 * `urls` and asks for what comes after the last event that it has.
 */
export function readSteadily(
  urls: () => string[],
  organisationId: string,
  options: StreamOptions & { lastEventId: string },
  isRestless = true,
): SteadyReader {
  const ids: string[] = []
  let { lastEventId } = options
  let connections = 0
  let isOver = false
  let close: () => unknown = () => undefined

  function onEvent({ id = '', event }: EventSourceMessage): void {
    ids.push(event === 'gap' ? 'gap' : id)
    lastEventId = id
  }

  async function readOnce(): Promise<void> {
    const at = urls()
    const url = at[Math.floor(Math.random() * at.length)] ?? ''
    const until = isRestless ? 1 + Math.floor(Math.random() * LONGEST_LIFE) : Infinity
    const reader = await readStream(url, organisationId, { ...options, lastEventId, until, onEvent })
    close = () => reader.close()
    if (isOver) close()
    connections++
    await reader.ended
    if (reader.events.length === 0) await delay(PAUSE_AFTER_FAILURE_MS)
  }

  async function run(): Promise<void> {
    while (!isOver) await readOnce().catch(() => delay(PAUSE_AFTER_FAILURE_MS))
  }

  const running = run()
  return {
    ids,
    connections: () => connections,
    async stop() {
      isOver = true
      close()
      await running
    },
  }
}

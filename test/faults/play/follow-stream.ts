import { setTimeout as delay } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import { nowMs } from './clock.ts'
import type { Dice } from './dice.ts'
import type { FollowedStream } from './record.ts'
import type { PlayWorld } from './world.ts'

/** A client of the event stream that reconnects at random; `settle` has it connect once more and stay. */
export type StreamFollower = { settle(): void; close(): Promise<void> }

const CONNECTED_MS = [100, 6_000] as const
const AWAY_MS = [0, 1_500] as const

/** Follows the events of an organisation over any API, from one connection to the next as an `EventSource` does. */
export function followStream(
  world: PlayWorld,
  { organisationId, apiKey }: { organisationId: string; apiKey: string },
  dice: Dice,
): StreamFollower {
  const followed: FollowedStream = { organisationId, since: null, received: [], gaps: [] }
  world.streams.push(followed)
  let lastEventId: string | null = null
  let isSettling = false
  let isClosed = false
  let aborter = new AbortController()

  async function connect(): Promise<void> {
    const apis = world.processes.filter((played) => played.apiUrl() !== null)
    if (apis.length === 0) return
    const api = dice.pick(apis)
    const response = await fetch(`${api.apiUrl()}/api/orgs/${organisationId}/events/stream`, {
      headers: { 'x-api-key': apiKey, ...(lastEventId === null ? {} : { 'last-event-id': lastEventId }) },
      signal: aborter.signal,
    })
    if (response.status !== 200) return
    const parser = createParser({
      onEvent({ id = '', event }) {
        if (event === 'gap') followed.gaps.push({ at: nowMs(), process: api.name })
        else if (event !== 'position') followed.received.push(id)
      },
    })
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      const decoded = decoder.decode(chunk, { stream: true })
      parser.feed(decoded)
      const blocks = (text + decoded).split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        // An id counts without data too (HTML standard, 9.2.6), which the parser does not report.
        lastEventId = /^id: (.+)$/m.exec(block)?.[1] ?? lastEventId
        if (lastEventId !== null) followed.since ??= nowMs()
      }
    }
  }

  async function run(): Promise<void> {
    while (!isClosed) {
      aborter = new AbortController()
      const { signal } = aborter
      const connected = connect().catch(() => undefined)
      const limit = new AbortController()
      const stay = isSettling ? Infinity : dice.int(...CONNECTED_MS)
      if (stay !== Infinity)
        void delay(stay, undefined, { signal: limit.signal }).then(
          () => aborter.abort(),
          () => undefined,
        )
      await connected
      limit.abort()
      if (!signal.aborted) await delay(100)
      if (!isSettling) await delay(dice.int(...AWAY_MS))
    }
  }

  const running = run()
  return {
    settle() {
      isSettling = true
      aborter.abort()
    },
    async close() {
      isClosed = true
      aborter.abort()
      await running
    },
  }
}

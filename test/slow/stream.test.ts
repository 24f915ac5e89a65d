import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { newId } from '../../src/ids.ts'
import { createTestDatabase, type TestDatabase } from '../helpers/database/database.ts'
import { eventually } from '../helpers/eventually.ts'
import { createMember, publishRow, type TestMember } from '../helpers/database/factories.ts'
import { percentile } from '../helpers/percentile.ts'
import { type PosthornProcess, startPosthorn } from '../helpers/processes/posthorn.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { readStream, type StreamOptions } from '../helpers/stream/stream-reader.ts'
import { setTimeout as delay } from 'node:timers/promises'
import type { EventSourceMessage } from 'eventsource-parser'

const PUBLISHERS = 8
const IDLE = 500

describe('the event stream under load', () => {
  let database: TestDatabase
  let member: TestMember
  let processes: PosthornProcess[]

  beforeEach(async () => {
    database = await createTestDatabase()
    member = await createMember(database.dataSource)
    processes = []
  })
  afterEach(async () => {
    await Promise.all(processes.map((posthorn) => posthorn.stop()))
    await database.drop()
  })

  async function start(): Promise<PosthornProcess> {
    const posthorn = await startPosthorn({
      command: 'api',
      databaseUrl: database.url,
      temporalAddress: testServers().temporalAddress,
      taskQueue: `stream-${randomUUID()}`,
      env: { RATE_LIMIT_MANAGEMENT: '0' },
    })
    processes.push(posthorn)
    return posthorn
  }
  async function end(posthorn: PosthornProcess): Promise<void> {
    processes = processes.filter((other) => other !== posthorn)
    await posthorn.kill()
  }

  /** Publishes by several at once, every fifth event in a transaction of its own; returns the events of a second. */
  async function publish(count: number, urls: () => string[]): Promise<number> {
    let left = count
    const startedAt = performance.now()
    const publishOn = async (): Promise<void> => {
      while (left-- > 0) {
        const idempotencyKey = left % 5 === 0 ? newId() : null
        // The same request again until it is answered: its process may be killed.
        await eventually(() => publishOne(urls(), idempotencyKey))
      }
    }
    await Promise.all(Array.from({ length: PUBLISHERS }, publishOn))
    return count / ((performance.now() - startedAt) / 1_000)
  }
  async function publishOne(urls: string[], idempotencyKey: string | null): Promise<void> {
    const url = urls[Math.floor(Math.random() * urls.length)] ?? ''
    const { status } = await fetch(`${url}/api/orgs/${member.organisationId}/events`, {
      method: 'POST',
      headers: {
        'x-api-key': member.apiKey,
        'content-type': 'application/json',
        ...(idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey }),
      },
      body: '{"event":"customer:created","data":{"id":"cus_1","text":"line\\nline \u2028 🏕️ \\u0000"}}',
    })
    expect(status).to.equal(202)
  }
  const stored = async (): Promise<string[]> => {
    const found = await database.dataSource.query<{ id: string }[]>(
      'SELECT id FROM event WHERE organisation_id = $1 ORDER BY sequence',
      [member.organisationId],
    )
    return found.map(({ id }) => id)
  }
  /** Something to go on from. */
  const first = async (): Promise<string> => {
    await publishRow(database.dataSource, member.organisationId)
    return (await stored())[0]!
  }

  it('loses and repeats nothing when its process is killed and another replaces it', async () => {
    let [a, b] = [await start(), await start()]
    const urls = () => [a.url, b.url]
    const options = { apiKey: member.apiKey, lastEventId: await first() }
    const readers = Array.from({ length: 10 }, () => readSteadily(urls, member.organisationId, options))
    for (let round = 0; round < 2; round++) {
      const published = publish(600, urls)
      await eventually(() => expect(readers[0]!.connections()).to.be.at.least(1))
      await end(a)
      a = await start()
      await end(b)
      b = await start()
      await published
    }
    const [, ...expected] = await stored()
    expect(expected.length).to.be.at.least(1_200)
    for (const { ids } of readers) await eventually(() => expect(ids).to.have.length(expected.length), 60_000)
    await Promise.all(readers.map((reader) => reader.stop()))
    for (const { ids } of readers) expect(ids).to.deep.equal(expected)
  })

  it('ends at SIGTERM, however many streams are open', async () => {
    const posthorn = await start()
    const streams = await Promise.all(
      Array.from({ length: 200 }, () =>
        readStream(posthorn.url, member.organisationId, { apiKey: member.apiKey }),
      ),
    )
    expect(await posthorn.stop()).to.equal(0)
    expect(await Promise.all(streams.map(({ ended }) => ended))).to.deep.equal(streams.map(() => true))
  })

  it('does not slow down publishers', async () => {
    const posthorn = await start()
    const urls = () => [posthorn.url]
    const rounds = 3
    await publish(500, urls)
    const [none, idle]: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      none.push(await publish(500, urls))
      const readers = await Promise.all(
        Array.from({ length: IDLE }, () =>
          readStream(posthorn.url, member.organisationId, {
            apiKey: member.apiKey,
            query: { events: 'invoice:paid' },
          }),
        ),
      )
      idle.push(await publish(500, urls))
      await Promise.all(readers.map((reader) => reader.close()))
    }
    expect(percentile(idle, 0.5) / percentile(none, 0.5)).to.be.above(0.6)
  })
})

type SteadyReader = {
  /** Ids of all events that it got, over all its connections; `gap` for a gap. */
  ids: string[]
  connections(): number
  stop(): Promise<void>
}

const PAUSE_AFTER_FAILURE_MS = 50

/**
 * A reader that never gives up: when its stream breaks, it connects again to one of `urls` and asks for what comes
 * after the last event that it has.
 */
function readSteadily(
  urls: () => string[],
  organisationId: string,
  options: StreamOptions & { lastEventId: string },
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
    const reader = await readStream(url, organisationId, { ...options, lastEventId, onEvent })
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

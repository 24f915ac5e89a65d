import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { RETRY_WAITS_MS } from '../../src/domain/retry-schedule.ts'
import { callApi } from '../helpers/api/api.ts'
import { createTestDatabase, type TestDatabase } from '../helpers/database/database.ts'
import { TEST_KEY_RING } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { startPosthorn, type PosthornProcess } from '../helpers/processes/posthorn.ts'
import { startSteadyPublisher } from '../helpers/processes/steady-publisher.ts'
import { createReceiver, type Receiver } from '../helpers/receivers/receiver.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { writeHistory } from './history.ts'
import { buildPreviousRelease } from './previous-release.ts'

const API_KEY = 'phk_upgrade_Wq7ZrT5n_in_clear_0001_kP3x'
const ORGANISATION = '/api/orgs/org_upgrade'
const SEED = {
  organisations: [
    {
      id: 'org_upgrade',
      name: 'Upgrade',
      email: 'info@upgrade.example',
      supportEmail: null,
      timeZone: 'Europe/Brussels',
      members: [
        {
          id: 'mem_upgrade',
          name: 'Uma',
          email: 'uma@upgrade.example',
          fullAccess: true,
          pushEnabled: false,
          apiKeys: [{ name: 'upgrade', key: API_KEY }],
        },
      ],
    },
  ],
}

const WAITING = 500
/** Completed deliveries that are in the tables already. */
const HISTORY = Number(process.env['POSTHORN_UPGRADE_HISTORY'] ?? 0)
const EVENTS_PER_SECOND = 100
const GIVE_UP_AFTER_MS = 30_000
/** Between two processes that are replaced. */
const PAUSE_MS = 8_000
/** An endpoint that has never confirmed anything gets a few first attempts a second. */
const FIRST_ATTEMPTS_TIMEOUT_MS = 300_000
/** Until the wait after the fifth attempt has ended. */
const LAST_RETRY_TIMEOUT_MS = 420_000

const SETTINGS = {
  // So many events a second are more than a small Temporal starts workflows.
  FIRST_ATTEMPT: 'direct',
  RATE_LIMIT_PUBLISH: '100000',
  RATE_LIMIT_MANAGEMENT: '100000',
}

describe('an upgrade under load, and the way back', function () {
  this.timeout(40 * 60_000)
  const taskQueue = `upgrade-${randomUUID()}`
  const running = new Set<PosthornProcess>()
  let folder: string
  let previous: string
  let database: TestDatabase
  let healthy: Receiver
  let failing: Receiver
  let isFailing = true

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-upgrade-'))
    previous = await buildPreviousRelease()
    database = await createTestDatabase('template0')
    healthy = await createReceiver()
    failing = await createReceiver({ answer: () => (isFailing ? 500 : 200) })
  })
  after(async () => {
    await Promise.all([...running].map((posthorn) => posthorn.kill()))
    await Promise.all([healthy.close(), failing.close()])
    await database.drop()
    rmSync(folder, { recursive: true })
  })

  const run = (program: string, ...args: string[]) =>
    promisify(execFile)(process.execPath, [program, ...args], {
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: database.url,
        POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING,
      },
    })

  async function start(program: string, command: 'serve' | 'worker'): Promise<PosthornProcess> {
    const { temporalAddress } = testServers()
    const options = { program, command, databaseUrl: database.url, temporalAddress, taskQueue }
    const posthorn = await startPosthorn({ ...options, env: SETTINGS })
    running.add(posthorn)
    return posthorn
  }

  /** Replaces the processes one by one, each new one beside the old one first. */
  async function replaceAll(processes: PosthornProcess[], program: string): Promise<void> {
    for (const [index, old] of processes.entries()) {
      const next = await start(program, index < 2 ? 'worker' : 'serve')
      processes[index] = next
      expect(await old.stop()).to.equal(0)
      running.delete(old)
      await delay(PAUSE_MS)
    }
  }

  it(`loses nothing, repeats nothing and is never early at ${EVENTS_PER_SECOND} events a second`, async function () {
    await run(previous, 'migrate')
    const seed = join(folder, 'seed.json')
    writeFileSync(seed, JSON.stringify(SEED))
    await run(previous, 'seed', seed)
    const processes = [
      await start(previous, 'worker'),
      await start(previous, 'worker'),
      await start(previous, 'serve'),
      await start(previous, 'serve'),
    ]
    const apis = (): string[] => processes.slice(2).map(({ url }) => url)
    for (const [{ url }, subscribedEventKeys] of [
      [healthy, ['customer:created']],
      [failing, ['invoice:created']],
    ] as const) {
      const made = await callApi(apis()[0]!, 'POST', `${ORGANISATION}/webhooks`, {
        apiKey: API_KEY,
        body: { url, subscribedEventKeys, enabled: true },
      })
      expect(made.status, made.text).to.equal(201)
      const { id: webhookId } = made.json as { id: string }
      if (url === healthy.url)
        await writeHistory(database.dataSource, { organisationId: 'org_upgrade', webhookId, count: HISTORY })
    }
    let longestRefusalMs = 0
    const publish = (event: string, deliveryIds: string[]) =>
      startSteadyPublisher({
        apis,
        path: `${ORGANISATION}/events`,
        apiKey: API_KEY,
        event,
        perSecond: EVENTS_PER_SECOND,
        giveUpAfterMs: GIVE_UP_AFTER_MS,
        onAccepted(accepted) {
          deliveryIds.push(...accepted.deliveryIds)
          longestRefusalMs = Math.max(longestRefusalMs, accepted.refusedForMs)
        },
      })
    const waitingIds: string[] = []
    const waiting = publish('invoice:created', waitingIds)
    await eventually(() => {
      expect(waitingIds.length).to.be.at.least(WAITING)
    }, 60_000)
    await waiting.stop()
    await eventually(async () => {
      expect(await count(waitingIds, `state <> 'completed' AND attempts >= 1`)).to.be.at.least(WAITING)
    }, FIRST_ATTEMPTS_TIMEOUT_MS)
    // Most have failed five times, and wait for five minutes: until after the way back.
    isFailing = false
    const steadyIds: string[] = []
    const steady = publish('customer:created', steadyIds)

    const startedAt = performance.now()
    await run(testServers().posthorn, 'migrate')
    const migratedMs = performance.now() - startedAt
    await replaceAll(processes, testServers().posthorn)
    await replaceAll(processes, previous)
    await steady.stop()

    const published = [...steadyIds, ...waitingIds]
    await eventually(async () => {
      expect(await count(published, `state = 'completed'`)).to.equal(published.length)
    }, LAST_RETRY_TIMEOUT_MS)
    const lost = steadyIds.length - postsById(healthy).size
    const twice = [...postsById(healthy).values()].filter((posts) => posts.length > 1).length
    this.test!.title +=
      ` (${published.length} deliveries, ${twice} POSTed twice, refused for ${Math.round(longestRefusalMs)} ms` +
      ` at most, migrated in ${Math.round(migratedMs)} ms, earliest retry ${earliestRetry(failing).toFixed(1)} ms late)`
    expect(lost).to.equal(0)
    // A process that is stopped finishes what is in flight.
    expect(twice).to.equal(0)
    expect(longestRefusalMs).to.be.below(1_000)
    expect(earliestRetry(failing)).to.be.at.least(0)
  })

  async function count(ids: readonly string[], condition: string): Promise<number> {
    const [row] = await database.dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM delivery WHERE id = ANY($1::uuid[]) AND ${condition}`,
      [ids],
    )
    return row!.count
  }

  function postsById(receiver: Receiver): Map<string, Receiver['posts']> {
    const byId = new Map<string, Receiver['posts']>()
    for (const post of receiver.posts) {
      const id = String(post.headers['x-webhook-event-id'])
      byId.set(id, [...(byId.get(id) ?? []), post])
    }
    return byId
  }

  /** The least time in ms between the instant a retry was due and its arrival. */
  function earliestRetry(receiver: Receiver): number {
    let earliest = Infinity
    for (const posts of postsById(receiver).values())
      for (const [index, post] of posts.entries()) {
        const before = posts[index - 1]
        if (before === undefined) continue
        const wait = RETRY_WAITS_MS[index - 1] ?? 0
        earliest = Math.min(earliest, post.arrivedAt - before.answeredAt - wait)
      }
    return earliest
  }
})

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
import { readWaitedHistories } from './waited-histories.ts'

const API_KEY = 'phk_upgrade_Wq7ZrT5n_in_clear_0001_kP3x'

/** A seed file of one organisation, whose member's key is known. */
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

const ORGANISATION = '/api/orgs/org_upgrade'
const WAITING = 200
/** Completed deliveries that are in the tables already. */
const HISTORY = Number(process.env['POSTHORN_UPGRADE_HISTORY'] ?? 0)
const EVENTS_PER_SECOND = 20
/** Publishing is refused from the end of the old processes until the new ones are ready. */
const GIVE_UP_AFTER_MS = 120_000
const PUBLISH_RETRY_MS = 2_000
/** Under load, after the new processes are ready. */
const LOAD_MS = 2_000
/** On a busy machine, while hundreds of requests are refused and sent again. */
const CONNECT_TIMEOUT_MS = 60_000
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

describe('an upgrade with all processes stopped, under load', function () {
  this.timeout(30 * 60_000)
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

  async function stop(posthorn: PosthornProcess): Promise<void> {
    expect(await posthorn.stop()).to.equal(0)
    running.delete(posthorn)
  }

  it(`loses nothing, repeats nothing and is never early at ${EVENTS_PER_SECOND} events a second`, async function () {
    await run(previous, 'migrate')
    const seed = join(folder, 'seed.json')
    writeFileSync(seed, JSON.stringify(SEED))
    await run(previous, 'seed', seed)
    const workers = [await start(previous, 'worker'), await start(previous, 'worker')]
    let services = [await start(previous, 'serve'), await start(previous, 'serve')]
    const apis = (): string[] => services.map(({ url }) => url)
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
        retryAfterMs: PUBLISH_RETRY_MS,
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
    const steadyIds: string[] = []
    const steady = publish('customer:created', steadyIds)
    const { posthorn } = testServers()
    const refusal = await run(posthorn, 'migrate').then(() => '', String)
    expect(refusal).to.include('needs all processes of Posthorn stopped')
    // Some wait for five minutes, others for seconds, and a few are just being handed to a worker.
    await eventually(async () => {
      expect(await idsOf(waitingIds, 'attempts = 5')).to.have.length.of.at.least(WAITING / 10)
    }, FIRST_ATTEMPTS_TIMEOUT_MS)

    await Promise.all(workers.map(stop))
    await Promise.all(services.map(stop))
    isFailing = false
    const waitedIds = await idsOf(waitingIds, `state <> 'completed' AND started_at IS NOT NULL`)
    await database.dataSource.destroy()
    const migratingAt = performance.now()
    await run(posthorn, 'migrate')
    const migratedMs = performance.now() - migratingAt
    await eventually(() => database.dataSource.initialize(), CONNECT_TIMEOUT_MS)
    const upgradedAtMs = Date.now()
    services = [await start(posthorn, 'serve'), await start(posthorn, 'serve')]
    for (const command of ['worker', 'worker'] as const) await start(posthorn, command)
    await delay(LOAD_MS)
    await steady.stop()

    const published = [...steadyIds, ...waitingIds]
    await eventually(async () => {
      expect(await countOpen()).to.equal(0)
    }, LAST_RETRY_TIMEOUT_MS)
    expect(await idsOf(published, `state <> 'completed'`)).to.deep.equal([])
    const waited = await readWaitedHistories(testServers().temporalAddress, waitedIds, upgradedAtMs)
    const lost = steadyIds.length - postsById(healthy).size
    const posts = postsById(healthy, failing)
    const attempts = await attemptsOf(published)
    const twice = attempts.filter(({ id, attempts }) => posts.get(id)?.length !== attempts)
    const earliestMs = earliestRetryMs(postsById(failing))
    this.test!.title +=
      ` (${published.length} deliveries, ${twice.length} POSTed twice, refused for ${Math.round(longestRefusalMs)} ms` +
      ` at most, migrated in ${Math.round(migratedMs)} ms, earliest retry ${earliestMs.toFixed(1)} ms late,` +
      ` ${waited.continued} of ${waitedIds.length} went on in their run, ${waited.handedOver} attempts handed over)`
    expect(lost).to.equal(0)
    // A process that is stopped finishes what is in flight.
    expect(twice).to.deep.equal([])
    // A claim may come as much before its time.
    expect(earliestMs).to.be.at.least(-3)
    // What the release before recorded goes on with this one's code: its outcomes, and its requests of attempts.
    expect(waited.broken).to.deep.equal([])
    expect(waited.continued).to.equal(waitedIds.length)
    expect(waited.handedOver).to.be.above(0)
  })

  async function idsOf(ids: readonly string[], condition: string): Promise<string[]> {
    const rows = await database.dataSource.query<{ id: string }[]>(
      `SELECT id FROM delivery WHERE id = ANY($1::uuid[]) AND ${condition}`,
      [ids],
    )
    return rows.map(({ id }) => id)
  }

  async function countOpen(): Promise<number> {
    const [row] = await database.dataSource.query<{ count: number }[]>(
      'SELECT count(*)::int AS count FROM delivery WHERE completed_at IS NULL',
    )
    return row!.count
  }

  function attemptsOf(ids: readonly string[]): Promise<{ id: string; attempts: number }[]> {
    return database.dataSource.query('SELECT id, attempts FROM delivery WHERE id = ANY($1::uuid[])', [ids])
  }
})

type PostsById = Map<string, Receiver['posts']>

/** The POSTs of each delivery, in order of arrival. */
function postsById(...receivers: Receiver[]): PostsById {
  const byId: PostsById = new Map()
  for (const post of receivers.flatMap(({ posts }) => posts)) {
    const id = String(post.headers['x-webhook-event-id'])
    const posts = byId.get(id)
    if (posts === undefined) byId.set(id, [post])
    else posts.push(post)
  }
  return byId
}

/** The least time in ms between the instant a retry was due and its arrival. */
function earliestRetryMs(byId: PostsById): number {
  let earliest = Infinity
  for (const posts of byId.values())
    for (const [index, post] of posts.entries()) {
      const before = posts[index - 1]
      if (before === undefined) continue
      const wait = RETRY_WAITS_MS[index - 1] ?? 0
      earliest = Math.min(earliest, post.arrivedAt - before.answeredAt - wait)
    }
  return earliest
}

import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import type { Answer } from '../helpers/receivers/receiver.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { createDatabaseProxy } from './rig/tcp-proxy.ts'

const EVENTS = 60
const WEBHOOKS = 3

/** Each endpoint that hangs has two POSTs in flight at most. */
const HANGING = { webhooks: 30, events: 4 }

/** How long an endpoint occupies a slot before it answers, and a process of these tests lets it. */
const SLOW_ANSWER_MS = 3_000
const GRACE_MS = 5_000

/** For requests on their way to a receiver that is busy; most of what a free slot would begin arrives later. */
const ARRIVAL_DELAY_MS = 2_500

describe('the shutdown of a process', () => {
  const stage = useStage()

  beforeEach(() => addWebhooks(WEBHOOKS - 1))

  async function addWebhooks(count: number): Promise<void> {
    const { organisationId } = stage.member
    for (let more = 0; more < count; more++)
      await createWebhookRow(stage.dataSource, { organisationId, url: stage.receiver.url })
  }

  /** Publishes more than can be in flight at once, and waits until enough is. */
  async function load(posthorn: PosthornProcess, events = EVENTS): Promise<void> {
    await Promise.all(Array.from({ length: events }, () => stage.publish(posthorn)))
    await eventually(() => expect(stage.receiver.posts.length).to.be.at.least(50))
  }

  /** SIGTERM; how long the end took, its exit code, and the POSTs that began or arrived after it. */
  async function end(
    posthorn: PosthornProcess,
  ): Promise<{ code: number | null; tookMs: number; begun: number; arrived: number }> {
    const signalledAt = Date.now()
    const stopping = posthorn.stop()
    const stoppingAt = await eventually(() => {
      const line = posthorn
        .log()
        .split('\n')
        .find((text) => text.includes('"service.stopping"'))
      if (line === undefined) throw new Error('it has not heard of it')
      return (JSON.parse(line) as { time: number }).time
    })
    const code = await stopping
    const tookMs = Date.now() - signalledAt
    const [{ begun } = { begun: -1 }] = await stage.dataSource.query<{ begun: number }[]>(
      `SELECT count(*)::int AS begun FROM attempt WHERE started_at > to_timestamp($1::float8 / 1000)`,
      // To the millisecond on either side.
      [stoppingAt + 5],
    )
    const arrived = stage.receiver.posts.filter(
      ({ arrivedAt }) => arrivedAt > stoppingAt + ARRIVAL_DELAY_MS,
    ).length
    return { code, tookMs, begun, arrived }
  }

  async function allDelivered(all = EVENTS * WEBHOOKS): Promise<void> {
    await eventually(async () => {
      const [found] = await stage.dataSource.query<{ completed: number; all: number }[]>(
        `SELECT count(*) FILTER (WHERE state = 'completed')::int AS completed, count(*)::int AS all FROM delivery`,
      )
      expect(found).to.deep.equal({ completed: all, all })
    }, 60_000)
  }

  function postsPerDelivery(): number[] {
    const ids = new Set(stage.receiver.posts.map(({ headers }) => String(headers['x-webhook-event-id'])))
    return [...ids].map((id) => stage.receiver.postsOf(id).length)
  }

  const slowly: Answer = (_index, _post, response) => {
    setTimeout(() => response.writeHead(200).end(), SLOW_ANSWER_MS)
    return null
  }
  const never: Answer = () => null

  for (const mode of ['workflow', 'direct']) {
    it(`starts no POST after SIGTERM, and lets those in flight finish (FIRST_ATTEMPT=${mode})`, async () => {
      stage.answerWith(slowly)
      const env = { FIRST_ATTEMPT: mode, SHUTDOWN_GRACE_MS: String(GRACE_MS) }
      const posthorn = await stage.start({ env })
      await load(posthorn)
      const { tookMs, ...ended } = await end(posthorn)
      expect(ended).to.deep.equal({ code: 0, begun: 0, arrived: 0 })
      expect(tookMs).to.be.below(GRACE_MS + 5_000)
      stage.answerWith(() => 200)
      await stage.start({ env })
      await allDelivered()
      // Those in progress were recorded, those not begun were released: nothing is posted twice.
      expect(Math.max(...postsPerDelivery())).to.equal(1)
    })
  }

  it('ends within five seconds of its grace when no endpoint answers, and loses nothing', async () => {
    stage.answerWith(never)
    await addWebhooks(HANGING.webhooks - WEBHOOKS)
    const env = { FIRST_ATTEMPT: 'overflow', SHUTDOWN_GRACE_MS: '2000' }
    const posthorn = await stage.start({ env })
    await load(posthorn, HANGING.events)
    const { tookMs, ...ended } = await end(posthorn)
    expect(ended).to.deep.equal({ code: 0, begun: 0, arrived: 0 })
    expect(tookMs).to.be.within(1_500, 7_000)
    stage.answerWith(() => 200)
    await stage.start({ env })
    await allDelivered(HANGING.events * HANGING.webhooks)
    // Only the POST that was cut off is made again; an earlier one may have timed out.
    for (const { id, attempts } of await stage.dataSource.query<{ id: string; attempts: number }[]>(
      'SELECT id, attempts FROM delivery',
    ))
      expect(stage.receiver.postsOf(id).length, id).to.be.at.most(attempts + 1)
  })

  it('ends within five seconds of its grace when the database has fallen silent', async () => {
    const proxy = await createDatabaseProxy(stage.databaseUrl)
    try {
      const posthorn = await stage.start({ databaseUrl: proxy.url, env: { SHUTDOWN_GRACE_MS: '1000' } })
      stage.answerWith(slowly)
      await stage.publish(posthorn)
      await eventually(() => expect(stage.receiver.posts).to.have.length(WEBHOOKS))
      proxy.fallSilent('all')
      const { tookMs } = await end(posthorn)
      expect(tookMs).to.be.below(6_500)
    } finally {
      await proxy.close()
    }
  })
})

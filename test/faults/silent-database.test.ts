import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { closeDataSource, createDataSource } from '../../src/db/connection/data-source.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { createDatabaseProxy } from './rig/tcp-proxy.ts'

type Answered = {
  atMs: number
  status: number
  ms: number
  retryAfter: string | null
  deliveryId: string | null
}

describe('a database that falls silent', () => {
  const stage = useStage()
  let proxy: Awaited<ReturnType<typeof createDatabaseProxy>>

  beforeEach(async () => {
    proxy = await createDatabaseProxy(stage.databaseUrl)
  })
  afterEach(() => proxy.close())

  const start = (): Promise<PosthornProcess> =>
    stage.start({ databaseUrl: proxy.url, env: { SHUTDOWN_GRACE_MS: '2000' } })

  async function publish(posthorn: PosthornProcess, sinceMs: number): Promise<Answered> {
    const startedAt = performance.now()
    const { organisationId, apiKey } = stage.member
    const answer = await posthorn.call('POST', `/api/orgs/${organisationId}/events`, {
      apiKey,
      body: { event: 'customer:created', data: { id: 'cus_1' } },
    })
    const { deliveries = [] } = answer.json as { deliveries?: { id: string }[] }
    return {
      atMs: startedAt - sinceMs,
      status: answer.status,
      ms: performance.now() - startedAt,
      retryAfter: answer.headers.get('retry-after'),
      deliveryId: deliveries[0]?.id ?? null,
    }
  }

  /** Publishes some at once, so that the pool has connections for them, and waits for their ends. */
  async function warmUp(posthorn: PosthornProcess): Promise<void> {
    const answers = await Promise.all(Array.from({ length: 40 }, () => publish(posthorn, performance.now())))
    for (const { status } of answers) expect(status).to.equal(202)
    await Promise.all(
      answers.map(({ deliveryId }) => stage.reaches(deliveryId!, { state: 'completed', attempts: 1 })),
    )
  }

  /** Publishes ten a second until one is accepted after `untilMs`; resolves with all answers. */
  async function keepPublishing(
    posthorn: PosthornProcess,
    sinceMs: number,
    untilMs: number,
  ): Promise<Answered[]> {
    const sent: Promise<Answered>[] = []
    const seen = { accepted: false }
    while (!seen.accepted && performance.now() - sinceMs < 45_000) {
      const one = publish(posthorn, sinceMs)
      sent.push(one)
      void one.then(({ status, atMs }) => {
        if (status === 202 && atMs > untilMs) seen.accepted = true
      })
      await delay(100)
    }
    return Promise.all(sent)
  }

  function expectPromises(answers: Answered[], sinceMs: number): Answered {
    const accepted = answers.find(({ status, atMs, ms }) => status === 202 && atMs + ms > 1_000)
    expect(accepted, 'nothing was accepted again').not.to.equal(undefined)
    expect(accepted!.atMs + accepted!.ms).to.be.below(40_000)
    for (const { status, ms, atMs, retryAfter } of answers) {
      expect(status, `at ${atMs} ms`).to.be.oneOf([202, 503])
      if (status === 503) expect(retryAfter).to.match(/^[1-9]\d*$/)
      if (atMs > 20_000) expect(ms, `at ${atMs} ms`).to.be.below(10_000)
    }
    expect(sinceMs).to.be.above(0)
    return accepted!
  }

  it('accepts events over new connections, and delivers them', async () => {
    const posthorn = await start()
    await warmUp(posthorn)
    proxy.fallSilent('open')
    const faultAtMs = performance.now()
    const publishing = keepPublishing(posthorn, faultAtMs, 1_000)
    expect((await posthorn.call('GET', '/readyz')).json).to.include({ database: 'down' })
    const answers = await publishing
    const accepted = expectPromises(answers, faultAtMs)
    // The probe itself may get a lost connection from the pool, which is found out and replaced.
    await eventually(async () =>
      expect((await posthorn.call('GET', '/readyz')).json).to.deep.equal({ database: 'up', engine: 'up' }),
    )
    await stage.reaches(accepted.deliveryId!, { state: 'completed', attempts: 1 })
    // Of what was answered 503 some may be committed; the sweeper delivers it, and what was in progress.
    await eventually(async () => expect(await stage.uncompleted()).to.equal(0), 60_000)
    expect(await posthorn.stop()).to.equal(0)
  })

  it('accepts events as soon as new connections work, after these were silent too', async () => {
    const posthorn = await start()
    await warmUp(posthorn)
    proxy.fallSilent('all')
    const faultAtMs = performance.now()
    const publishing = keepPublishing(posthorn, faultAtMs, 22_000)
    await delay(21_000)
    expect((await posthorn.call('GET', '/readyz')).status).to.equal(503)
    proxy.speak()
    const accepted = expectPromises(await publishing, faultAtMs)
    await stage.reaches(accepted.deliveryId!, { state: 'completed', attempts: 1 })
    expect(await posthorn.stop()).to.equal(0)
  })

  it('locks a webhook for less than 45 seconds', async () => {
    const posthorn = await stage.start()
    const lost = await createDataSource({ url: proxy.url, poolSize: 1 }).initialize()
    const transaction = lost.createQueryRunner()
    await transaction.startTransaction()
    await transaction.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [stage.webhookId])
    await transaction.query('SELECT 1 FROM webhook WHERE id = $1 FOR NO KEY UPDATE', [stage.webhookId])
    proxy.fallSilent('all')
    const lostAtMs = performance.now()
    stage.answerWith(() => 500)
    const deliveryId = await stage.publish(posthorn)
    await stage.fails(deliveryId, 45_000)
    expect(performance.now() - lostAtMs).to.be.below(45_000)
    await closeDataSource(lost)
  })
})

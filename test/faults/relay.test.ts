import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../../src/free-port.ts'
import { createPublishRow } from '../../src/relay/publish-row.ts'
import { operatorKeysText, secretOf } from '../helpers/api/operator.ts'
import { createMember, createWebhookRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { startPosthorn, type PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { createReceiver, type Answer, type Receiver } from '../helpers/receivers/receiver.ts'
import { createOutbox, startTestRelay, type Outbox } from '../helpers/relay/outbox.ts'
import { createDice } from './play/dice.ts'
import { createDatabaseProxy } from './rig/tcp-proxy.ts'
import { createFakeClock } from './rig/fake-clock.ts'

const PRODUCER = fileURLToPath(new URL('./rig/outbox-producer.mjs', import.meta.url))
const ORGANISATIONS = 4
const CHAOS_MS = 15_000

/** A relay as a process of its own. */
function startRelay(
  outbox: Outbox,
  apiUrl: string,
  env: Record<string, string> = {},
): Promise<PosthornProcess> {
  return startPosthorn({
    command: 'relay',
    databaseUrl: '',
    temporalAddress: '',
    taskQueue: '',
    env: {
      RELAY_DATABASE_URL: outbox.url,
      RELAY_OPERATOR_KEY: secretOf('publisher'),
      POSTHORN_URL: apiUrl,
      METRICS_PORT: '0',
      ...env,
    },
  })
}

describe('kill -9 of the producer, the relays and the API at random, under load', function () {
  // Half a minute on a quiet machine.
  this.timeout(600_000)
  const stage = useStage()
  let outbox: Outbox
  let processes: (() => Promise<unknown>)[]

  beforeEach(async () => {
    outbox = await createOutbox()
    await outbox.dataSource.query(
      'CREATE TABLE shop_order (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)',
    )
    processes = []
  })
  afterEach(async () => {
    await Promise.all(processes.map((kill) => kill()))
    await outbox.drop()
  })

  it('has everything committed arrive, nothing uncommitted, and duplicates that are the same event', async () => {
    const organisations: string[] = []
    for (let count = 0; count < ORGANISATIONS; count++) {
      const { organisationId } = await createMember(stage.dataSource)
      await createWebhookRow(stage.dataSource, { organisationId, url: stage.receiver.url })
      organisations.push(organisationId)
    }
    const PORT = String(await freePort())
    const apiUrl = `http://127.0.0.1:${PORT}`
    const seed = Date.now() % 1_000_000
    const startApi = (): Promise<PosthornProcess> =>
      stage.start({
        command: 'api',
        awaitEngine: false,
        env: { PORT, POSTHORN_OPERATOR_KEYS: operatorKeysText() },
      })
    const starts = {
      api: startApi,
      relay: () => startRelay(outbox, apiUrl),
      otherRelay: () => startRelay(outbox, apiUrl),
      producer: () => Promise.resolve(startProducer(outbox.url, organisations)),
    }
    const kills: Record<string, number> = {}
    let untilMs = Infinity
    /** Kills and restarts one of them until the time is over, once at least; returns how the last one is ended. */
    async function live(name: keyof typeof starts): Promise<() => Promise<unknown>> {
      const dice = createDice(seed + name.length)
      for (;;) {
        const started: Killable = await starts[name]()
        processes.push(() => started.kill())
        if (performance.now() > untilMs && (kills[name] ?? 0) > 0) return started.stop ?? started.kill
        await delay(dice.int(500, 4_000))
        await started.kill()
        kills[name] = (kills[name] ?? 0) + 1
      }
    }
    await stage.start({ command: 'worker' })
    untilMs = performance.now() + CHAOS_MS
    const [killProducer, stopRelay, stopOther] = await Promise.all(
      (['producer', 'relay', 'otherRelay', 'api'] as const).map(live),
    )
    await killProducer!()
    // A relay waits for half a minute at most where the API was away for long.
    const found = `seed ${seed}, kills ${JSON.stringify(kills)}`
    await eventually(async () => {
      const left = (await outbox.rows()).map(({ id, attempts, error }) => `${id} ${attempts} ${error}`)
      expect(left.slice(0, 5), `${left.length} rows are left, ${found}`).to.deep.equal([])
    }, 240_000)
    const orders = await outbox.dataSource.query<{ id: string }[]>('SELECT id FROM shop_order ORDER BY id')
    const committed = orders.map(({ id }) => `order-${id}`)
    const [sequence] = await outbox.dataSource.query<{ last: string }[]>(
      'SELECT last_value AS last FROM shop_order_id_seq',
    )
    expect(committed.length, found).to.be.within(100, Number(sequence!.last) - 20)
    const sentByOrder = (): Map<string, Set<string>> => {
      const sent = new Map<string, Set<string>>()
      for (const { headers, body } of stage.receiver.posts) {
        const text = body.toString()
        const order = /"id":"(order-\d+)"/.exec(text)?.[1] ?? text
        sent.set(
          order,
          (sent.get(order) ?? new Set()).add(`${String(headers['x-webhook-event-id'])} ${text}`),
        )
      }
      return sent
    }
    await eventually(() => expect(sentByOrder().size, found).to.equal(committed.length), 120_000)
    const sent = sentByOrder()
    expect([...sent.keys()], found).to.have.members(committed)
    expect(
      [...sent].filter(([, each]) => each.size > 1),
      found,
    ).to.deep.equal([])
    const [counted] = await stage.dataSource.query<{ published: number }[]>(
      'SELECT count(*)::int AS published FROM event',
    )
    expect(counted!.published, found).to.equal(committed.length)
    expect([await stopRelay!(), await stopOther!()]).to.deep.equal([0, 0])
  })
})

describe('posthorn relay', () => {
  let outbox: Outbox
  let api: Receiver
  let answer: Answer

  const accept: Answer = (_index, _post, response) => {
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"id":"evt_1"}')
    return null
  }

  beforeEach(async () => {
    outbox = await createOutbox()
    answer = accept
    api = await createReceiver({ answer: (...given) => answer(...given) })
  })
  afterEach(async () => {
    await api.close()
    await outbox.drop()
  })

  const apiUrl = (): string => new URL(api.url).origin
  const untilEmpty = (): Promise<unknown> =>
    eventually(async () => expect(await outbox.rows()).to.deep.equal([]), 60_000)

  it('notices a database that falls silent, and goes on once it answers', async () => {
    const proxy = await createDatabaseProxy(outbox.url)
    const publishRow = createPublishRow({ apiUrl: apiUrl(), operatorKey: secretOf('publisher') })
    const relay = await startTestRelay(outbox, { publishRow, databaseUrl: proxy.url })
    try {
      await eventually(() => expect(relay.state().database).to.equal('up'))
      proxy.fallSilent('open')
      await outbox.insert({ organisation_id: 'org_a' })
      await untilEmpty()
      expect(relay.logged('relay.session_lost')).to.have.length(1)
      proxy.fallSilent('all')
      await eventually(() => expect(relay.state().database).to.equal('down'))
      await outbox.insert({ organisation_id: 'org_a' })
      proxy.speak()
      await untilEmpty()
    } finally {
      await relay.stop()
      await proxy.close()
    }
  })

  it('lets another process take over the organisation of one that is paused', async () => {
    answer = () => null
    const paused = await startRelay(outbox, apiUrl())
    await outbox.insert({ organisation_id: 'org_a' })
    await eventually(() => expect(api.posts).to.have.length(1))
    process.kill(paused.pid, 'SIGSTOP')
    answer = accept
    const other = await startRelay(outbox, apiUrl())
    await untilEmpty()
    await eventually(() => expect(other.log()).to.include('"relay.published"'))
    process.kill(paused.pid, 'SIGCONT')
    expect([await paused.stop(), await other.stop()]).to.deep.equal([0, 0])
  })

  it('tells the age of rows by the clock of PostgreSQL, and its own clock delays nothing', async function () {
    const clocks = [26 * 3_600, -26 * 3_600].map(createFakeClock)
    if (clocks.includes(null)) return this.skip()
    let failures = 2
    answer = (...given) => (failures-- > 0 ? 500 : accept(...given))
    const relays: PosthornProcess[] = []
    try {
      for (const clock of clocks) {
        const relay = await startRelay(outbox, apiUrl(), clock!.env)
        relays.push(relay)
        const old = new Date(Date.now() - 25 * 3_600_000).toISOString()
        await outbox.insert({ organisation_id: 'org_a' }, { organisation_id: 'org_a', created_at: old })
        await untilEmpty()
        await eventually(() => {
          expect(relay.log().match(/"event":"relay\.published"/g)).to.have.length(2)
          expect(relay.log().match(/"event":"relay\.late"/g)).to.have.length(1)
        })
        expect(await relay.stop()).to.equal(0)
        failures = 2
      }
    } finally {
      await Promise.all(relays.map((relay) => relay.kill()))
      for (const clock of clocks) clock?.remove()
    }
  })

  it('has probes and metrics, and ends at SIGTERM with a row on its way', async () => {
    const relay = await startRelay(outbox, apiUrl())
    await eventually(async () =>
      expect(await relay.probe('/readyz')).to.deep.equal({
        status: 200,
        json: { database: 'up', api: 'up' },
      }),
    )
    expect((await relay.probe('/healthz')).status).to.equal(200)
    await outbox.insert({ organisation_id: 'org_a' }, { organisation_id: 'org_b', data: 'no JSON' })
    await eventually(async () => {
      const text = await (await relay.scrape()).text()
      expect(text)
        .to.match(/^posthorn_relay_rows_total\{outcome="published"\} 1$/m)
        .and.match(/^posthorn_relay_rows_total\{outcome="refused"\} 1$/m)
        .and.match(/^posthorn_relay_parked_rows 1$/m)
        .and.match(/^posthorn_relay_waiting_rows 0$/m)
        .and.match(/^posthorn_relay_up\{part="api"\} 1$/m)
        .and.match(/^posthorn_build_info/m)
    })
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    answer = async (...given) => {
      await held
      return accept(...given)
    }
    await outbox.insert({ organisation_id: 'org_a' }, { organisation_id: 'org_a' })
    await eventually(() => expect(api.posts).to.have.length(2))
    const stopped = relay.stop()
    await eventually(() => expect(relay.log()).to.include('service.stopping'))
    release()
    expect(await stopped).to.equal(0)
    const left = (await outbox.rows()).filter(({ parked_at }) => parked_at === null)
    expect([left.length, api.posts.length]).to.deep.equal([1, 2])
  })
})

type Killable = { kill: () => Promise<void>; stop?: () => Promise<number | null> }

function startProducer(databaseUrl: string, organisations: readonly string[]): Killable {
  const child: ChildProcess = spawn(process.execPath, [PRODUCER, databaseUrl, ...organisations], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const killWithUs = (): void => void child.kill('SIGKILL')
  process.once('exit', killWithUs)
  const exited = once(child, 'exit')
  return {
    async kill() {
      process.off('exit', killWithUs)
      child.kill('SIGKILL')
      await exited
    },
  }
}

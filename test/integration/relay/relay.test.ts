import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createPublishRow, type PublishRow } from '../../../src/relay/publish-row.ts'
import { secretOf } from '../../helpers/api/operator.ts'
import { useApi } from '../../helpers/api/api.ts'
import { createMember } from '../../helpers/database/factories.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createReceiver, type Answer, type Receiver } from '../../helpers/receivers/receiver.ts'
import { createOutbox, startTestRelay, type Outbox, type TestRelay } from '../../helpers/relay/outbox.ts'

describe('posthorn relay', () => {
  const suite = useApi()
  let outbox: Outbox
  let organisationId: string
  let relays: TestRelay[]
  let stub: Receiver | null

  beforeEach(async () => {
    outbox = await createOutbox()
    organisationId = (await createMember(suite.database.dataSource)).organisationId
    relays = []
    stub = null
  })
  afterEach(async () => {
    await Promise.all(relays.map((relay) => relay.stop()))
    await stub?.close()
    await outbox.drop()
  })

  const toApi = (
    apiUrl = suite.api.url,
    operatorKey = secretOf('publisher'),
    timeoutMs = 10_000,
  ): PublishRow => createPublishRow({ apiUrl, operatorKey, timeoutMs })
  async function start(publishRow = toApi(), options: { keepHours?: number } = {}): Promise<TestRelay> {
    const relay = await startTestRelay(outbox, { publishRow, ...options })
    relays.push(relay)
    return relay
  }
  /** An API that answers what the test says. */
  async function startWithStub(answer: Answer): Promise<TestRelay> {
    stub = await createReceiver({ answer })
    return start(toApi(new URL(stub.url).origin, secretOf('publisher'), 1_000))
  }
  const accept: Answer = (_index, _post, response) => {
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"id":"evt_1"}')
    return null
  }
  const refuse =
    (status: number, headers: Record<string, string> = {}): Answer =>
    (_index, _post, response) => {
      response.writeHead(status, { 'content-type': 'application/problem+json', ...headers })
      return (response.end('{"type":"urn:posthorn:problem:stub","code":"stub","detail":"Not now."}'), null)
    }
  const isOf =
    (organisation: string) =>
    ({ path }: { path: string }) =>
      path.includes(`/${organisation}/`)
  const events = async (): Promise<string[]> => {
    const rows = await suite.database.dataSource.query<{ body: Buffer }[]>(
      'SELECT body FROM event WHERE organisation_id = $1 ORDER BY sequence',
      [organisationId],
    )
    return rows.map(({ body }) => body.toString())
  }
  const untilEmpty = () => eventually(async () => expect(await outbox.rows()).to.deep.equal([]))

  it('publishes what was committed in the order of the ids, token by token, and deletes it', async () => {
    const data = Array.from({ length: 60 }, (_, index) => `{ "id":"cus_${index}", "amount":1.50e2 }`)
    await outbox.insert(...data.map((text) => ({ organisation_id: organisationId, data: text })))
    await outbox.dataSource
      .transaction(async (manager) => {
        await manager.query(
          `INSERT INTO posthorn_outbox (organisation_id, event, data) VALUES ($1, 'customer:created', '{"id":"never"}')`,
          [organisationId],
        )
        throw new Error('rolled back')
      })
      .catch(() => undefined)
    await start()
    await untilEmpty()
    const published = await events()
    const shown = published.map((body) => /"data":(\{.*?\})/.exec(body)?.[1])
    expect(shown).to.deep.equal(data.map((text) => text.replaceAll(' ', '')))
  })

  it('publishes what a platform gives besides, and the time of the insert', async () => {
    const createdAt = new Date(Date.now() - 3_600_000)
    await outbox.insert({
      organisation_id: organisationId,
      trace_id: 'trace-7',
      span_id: 'span-7',
      triggered_by: { id: 'usr_7', name: 'An "Ann" Peeters' },
      created_at: createdAt.toISOString(),
    })
    await start()
    await untilEmpty()
    expect(JSON.parse((await events())[0]!)).to.deep.equal({
      event: 'customer:created',
      data: { id: 'cus_1' },
      timestamp: createdAt.getTime(),
      traceId: 'trace-7',
      spanId: 'span-7',
      triggeredBy: { id: 'usr_7', name: 'An "Ann" Peeters' },
    })
  })

  it('publishes a row once to as many webhooks as an organisation may have', async () => {
    const [{ id: webhookId } = { id: '' }] = await suite.database.dataSource.query<{ id: string }[]>(
      'SELECT gen_random_uuid() AS id',
    )
    const deliveries = Array.from({ length: 1_000 }, () => ({ id: webhookId, webhookId }))
    await startWithStub((_index, _post, response) => {
      response.writeHead(202, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ id: webhookId, deliveries }))
      return null
    })
    await outbox.insert({ organisation_id: organisationId })
    await untilEmpty()
    expect(stub!.posts).to.have.length(1)
  })

  it('publishes a row once whose answer was lost', async () => {
    const publishRow = toApi()
    let tries = 0
    await start(async (organisation, row, signal) => {
      const outcome = await publishRow(organisation, row, signal)
      tries++
      if (tries > 1) return outcome
      return { kind: 'failed', error: 'lost', retryAfterMs: 0, isApiDown: true }
    })
    await outbox.insert({ organisation_id: organisationId })
    await untilEmpty()
    expect([tries, (await events()).length]).to.deep.equal([2, 1])
  })

  it('publishes another event under the id of an earlier one, where the table was made anew', async () => {
    await start()
    for (const id of ['cus_1', 'cus_2']) {
      await outbox.insert({ organisation_id: organisationId, data: `{"id":"${id}"}` })
      await untilEmpty()
      await outbox.dataSource.query('TRUNCATE posthorn_outbox RESTART IDENTITY')
    }
    expect(await events()).to.have.length(2)
  })

  it('keeps published rows for the hours that are set', async () => {
    const [first = ''] = await outbox.insert({ organisation_id: organisationId })
    await outbox.dataSource.query(
      `UPDATE posthorn_outbox SET published_at = now() - interval '3 hours' WHERE id = $1`,
      [first],
    )
    const [second] = await outbox.insert({ organisation_id: organisationId })
    await start(toApi(), { keepHours: 2 })
    await eventually(async () => {
      const [row, ...others] = await outbox.rows()
      expect(others).to.deep.equal([])
      expect([row!.id, row!.published_at]).to.deep.equal([second, row!.published_at])
      expect(row!.published_at).to.be.instanceOf(Date)
    })
    expect(await events()).to.have.length(1)
  })

  it('parks what is refused with its problem, goes on, and publishes it once it is corrected', async () => {
    const ofOrganisation = (given: object) => ({ organisation_id: organisationId, ...given })
    const [unknown] = await outbox.insert(
      ofOrganisation({ event: 'no:such:key' }),
      ofOrganisation({ data: '{"id":' }),
      ofOrganisation({ data: '{"id":"cus_1"},"traceId":"set-from-data"' }),
      ofOrganisation({ data: '"text"' }),
      ofOrganisation({ data: JSON.stringify({ id: 'x'.repeat(300_000) }) }),
      ofOrganisation({ data: JSON.stringify({ id: 'x'.repeat(262_100) }) }),
      ofOrganisation({ created_at: 'infinity' }),
      ofOrganisation({ data: '{"id":"cus_last"}' }),
    )
    await start()
    await eventually(async () => expect(await outbox.rows()).to.have.length(7))
    expect(await events()).to.have.length(1)
    const parked = await outbox.rows()
    expect(parked.map(({ error }) => error!.replace(/:.*/, ''))).to.deep.equal([
      '422 invalid_fields',
      'malformed_json',
      'malformed_json',
      '422 invalid_fields',
      'body_too_large',
      '413 body_too_large',
      '400 malformed_json',
    ])
    expect(parked[0]!.error).to.include('/event There is no such event key.')
    for (const { parked_at, attempts } of parked)
      expect([parked_at === null, attempts]).to.deep.equal([false, 1])
    await outbox.dataSource.query(
      `UPDATE posthorn_outbox SET event = 'customer:updated', parked_at = NULL WHERE id = $1`,
      [unknown],
    )
    await eventually(async () => expect(await events()).to.have.length(2))
  })

  for (const [title, answer] of [
    ['429 with Retry-After', refuse(429, { 'retry-after': '3' })],
    ['a status of a proxy', (): number => 403],
    ["a gateway's refusal", (_i, _post, response) => (response.writeHead(400).end('{"code":"X"}'), null)],
    ['a broken connection', (_index, _post, response) => (response.destroy(), null)],
    ['no answer', () => null],
  ] as [string, Answer][])
    it(`has only the organisation wait after ${title}, with its first row at the head`, async () => {
      await outbox.insert(
        { organisation_id: 'org_a' },
        { organisation_id: 'org_a' },
        { organisation_id: 'org_b' },
      )
      let isRefusing = true
      const relay = await startWithStub((index, post, response) =>
        isRefusing && isOf('org_a')(post) ? answer(index, post, response) : accept(index, post, response),
      )
      await eventually(async () => {
        const [head, second, ...others] = await outbox.rows()
        expect(others).to.deep.equal([])
        expect([head!.attempts > 0, head!.parked_at, second!.attempts]).to.deep.equal([true, null, 0])
        expect(head!.error).to.be.a('string')
      })
      const keys = stub!.posts.filter(isOf('org_a')).map(({ headers }) => headers['idempotency-key'])
      expect(new Set(keys).size).to.equal(1)
      if (title.includes('Retry-After')) {
        const [head] = await outbox.dataSource.query<{ isLater: boolean }[]>(
          `SELECT retry_at > created_at + interval '3 s' AS "isLater" FROM posthorn_outbox ORDER BY id LIMIT 1`,
        )
        expect(head!.isLater).to.equal(true)
        expect(relay.logged('relay.postponed')[0]).to.have.property('delayMs').that.is.at.least(3_000)
      }
      isRefusing = false
      await untilEmpty()
    })

  it('parks nothing while its key is refused, and says so in its state', async () => {
    await outbox.insert({ organisation_id: organisationId })
    const relay = await start(toApi(suite.api.url, secretOf('manager')))
    await eventually(() => expect(relay.state()).to.deep.equal({ database: 'up', api: 'down' }))
    await eventually(async () => {
      const [row] = await outbox.rows()
      expect([row!.parked_at, row!.error]).to.deep.equal([
        null,
        '403 missing_scope: This operator key lacks the scope publish.',
      ])
    })
  })

  it('waits for an organisation that does not exist yet', async () => {
    const late = `org_late_${Date.now()}`
    await outbox.insert({ organisation_id: late })
    const relay = await start()
    await eventually(async () => expect((await outbox.rows())[0]!.error).to.include('404 not_found'))
    expect(relay.state().api).to.equal('up')
    await createMember(suite.database.dataSource, { organisationId: late })
    await untilEmpty()
  })

  it('leaves a row that is never to be tried, and goes on with others', async () => {
    await outbox.insert({ organisation_id: 'a', retry_at: 'infinity' }, { organisation_id: organisationId })
    await start()
    await eventually(async () => expect(await outbox.rows()).to.have.length(1))
  })

  it('shares organisations among processes, of which one at a time publishes for an organisation', async () => {
    const organisations = Array.from({ length: 12 }, (_, index) => `org_${index}`)
    for (const organisation of organisations)
      await outbox.insert(...Array.from({ length: 40 }, () => ({ organisation_id: organisation })))
    const inFlight = new Map<string, number>()
    let most = 0
    stub = await createReceiver({
      answer: async (index, post, response) => {
        const count = (inFlight.get(post.path) ?? 0) + 1
        inFlight.set(post.path, count)
        most = Math.max(most, count)
        await delay(5)
        inFlight.set(post.path, count - 1)
        return accept(index, post, response)
      },
    })
    const { origin } = new URL(stub.url)
    await Promise.all((['all', 'publisher'] as const).map((key) => start(toApi(origin, secretOf(key)))))
    await untilEmpty()
    const keysOf = (path: string) =>
      stub!.posts
        .filter((post) => post.path === path)
        .map(({ headers }) => String(headers['idempotency-key']))
    for (const organisation of organisations) {
      const ids = keysOf(`/api/orgs/${organisation}/events`).map((key) => Number(key.split('-')[1]))
      expect(ids, organisation).to.deep.equal([...ids].sort((one, other) => one - other))
      expect(new Set(ids).size, organisation).to.equal(40)
    }
    expect(most).to.equal(1)
    expect(new Set(stub.posts.map(({ headers }) => headers['x-operator-key'])).size).to.equal(2)
  })

  it('warns of a row that is older than its idempotency key lives', async () => {
    await outbox.insert(
      { organisation_id: organisationId, created_at: new Date(Date.now() - 25 * 3_600_000).toISOString() },
      { organisation_id: organisationId },
    )
    const relay = await start()
    await untilEmpty()
    expect(relay.logged('relay.published')).to.have.length(2)
    expect(relay.logged('relay.late')).to.have.length(1)
  })

  it('is woken by the commit, and finds rows by itself where there is no trigger', async () => {
    await start()
    const publishFive = async (): Promise<number> => {
      const beganAtMs = performance.now()
      for (let count = 0; count < 5; count++) {
        await outbox.insert({ organisation_id: organisationId })
        await untilEmpty()
      }
      return performance.now() - beganAtMs
    }
    await publishFive()
    const wokenMs = await publishFive()
    await outbox.dataSource.query('DROP TRIGGER posthorn_outbox_notify ON posthorn_outbox')
    expect(wokenMs).to.be.below((await publishFive()) / 2)
  })

  it('begins no further row at its end, and records those that were accepted', async () => {
    await outbox.insert(...Array.from({ length: 20 }, () => ({ organisation_id: organisationId })))
    const relay = await startWithStub(async (index, post, response) => {
      await delay(50)
      return accept(index, post, response)
    })
    await eventually(() => expect(stub!.posts.length).to.be.above(2))
    await relay.stop()
    relays = []
    const left = await outbox.rows()
    expect([left.length, left.every(({ attempts }) => attempts === 0)]).to.deep.equal([
      20 - stub!.posts.length,
      true,
    ])
    expect(left.length).to.be.above(5)
  })
})

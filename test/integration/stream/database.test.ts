import { EventEmitter, once } from 'node:events'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { createFeed } from '../../../src/stream/feed.ts'
import { createWatermark } from '../../../src/stream/watermark.ts'
import type { ApiDependencies } from '../../../src/http/api.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createMember, publishRow, type TestMember } from '../../helpers/database/factories.ts'
import { codeBlocksOf, readDocument } from '../../helpers/documents/documents.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { readStream, type StreamReader } from '../../helpers/stream/stream-reader.ts'
import { createTestApi, type TestApi, useApi } from '../../helpers/api/api.ts'
import { openTransaction } from '../../helpers/database/database.ts'

const refusal = (): Promise<unknown> => Promise.reject(new Error('Connection terminated unexpectedly'))

describe('a stream and its database', () => {
  const suite = useApi()
  let member: TestMember
  let reader: StreamReader

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
    reader = await readStream(suite.api.url, member.organisationId, { apiKey: member.apiKey })
  })
  afterEach(() => reader.close())

  const publish = () => publishRow(suite.database.dataSource, member.organisationId)

  it('continues without a gap when the database connections are lost', async () => {
    await publish()
    await eventually(() => expect(reader.events).to.have.length(1))
    for (let times = 0; times < 3; times++) {
      // The pool may hand out a connection that is just breaking.
      await eventually(() =>
        suite.database.dataSource.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()`,
        ),
      )
      await eventually(publish)
    }
    await eventually(() => expect(reader.events.length).to.be.at.least(4))
    const stored = await eventually(() =>
      suite.database.dataSource.query<{ id: string }[]>(
        'SELECT id FROM event WHERE organisation_id = $1 ORDER BY sequence',
        [member.organisationId],
      ),
    )
    await eventually(() =>
      expect(reader.events.map(({ id }) => id)).to.deep.equal(stored.map(({ id }) => id)),
    )
  })

  it('ends when an older database takes its place, and what it cannot resume is a gap', async () => {
    await publish()
    await eventually(() => expect(reader.events).to.have.length(1))
    const lastEventId = reader.events[0]!.id!
    const fresh = await readStream(suite.api.url, member.organisationId, { apiKey: member.apiKey })
    await eventually(() => expect(fresh.lastEventId()).to.not.equal(null))
    const position = fresh.lastEventId()!
    const { dataSource } = suite.database
    await dataSource.query('DELETE FROM event WHERE organisation_id = $1', [member.organisationId])
    await dataSource.query(`SELECT setval(pg_get_serial_sequence('event', 'sequence'), 1, false)`)
    expect(await reader.ended).to.equal(true)
    expect(await fresh.ended).to.equal(true)
    const resume = async (lastEventId: string) => {
      const resumed = await readStream(suite.api.url, member.organisationId, {
        apiKey: member.apiKey,
        lastEventId,
      })
      await eventually(() => expect(resumed.events.map(({ event }) => event)).to.deep.equal(['gap']))
      return resumed
    }
    const resumed = [await resume(lastEventId), await resume(position)]
    // The same numbers are given again, to other events.
    for (let times = 0; times < 10; times++) await publish()
    resumed.push(await resume(position))
    await publish()
    await eventually(() => expect(resumed.map(({ events }) => events.length)).to.deep.equal([12, 12, 2]))
    await Promise.all(resumed.map((stream) => stream.close()))
  })

  /** A process with statements that fail, or wait for `lasts`, while `refuses` is true of them; `refused` counts these. */
  async function createFailing() {
    const { dataSource } = suite.database
    const refuses = (() => false) as (text: string) => boolean
    const failing = { refuses, lasts: refusal, refused: 0, errors: 0 }
    const held = Object.create(dataSource) as DataSource
    held.query = async <Row>(text: string, parameters?: unknown[]) => {
      if (failing.refuses(text) && ++failing.refused) await failing.lasts()
      return dataSource.query<Row>(text, parameters)
    }
    const logger = { ...silentLogger, error: () => (failing.errors += 1) }
    return Object.assign(failing, { api: await createTestApi(held, {}, { logger }) })
  }

  /** What a failover does that loses the newest events, whose numbers are given again. */
  async function lose(count: number): Promise<void> {
    const sequence = `pg_get_serial_sequence('event', 'sequence')::regclass`
    const { dataSource } = suite.database
    await dataSource.query(`DELETE FROM event WHERE sequence > pg_sequence_last_value(${sequence}) - $1`, [
      count,
    ])
    await dataSource.query(`SELECT setval(${sequence}, pg_sequence_last_value(${sequence}) - ${count})`)
  }

  const isRead = (text: string) => text.includes('ORDER BY event.sequence')
  const outages = [
    { outage: 'queries failed', refuses: () => true, passed: 'more' },
    { outage: 'queries waited', refuses: () => true, passed: 'more', isHeld: true },
    { outage: 'reads of events failed', refuses: isRead, passed: 'more' },
    { outage: 'reads of events failed', refuses: isRead, passed: 'as many' },
  ]
  for (const { outage, refuses, passed, isHeld } of outages)
    it(`ends when an older database took its place while ${outage}, and has ${passed} events by then`, async () => {
      const failing = await createFailing()
      const over = new EventEmitter()
      if (isHeld) failing.lasts = () => once(over, 'now')
      const stream = await readStream(failing.api.url, member.organisationId, { apiKey: member.apiKey })
      for (let times = 0; times < 10; times++) await publish()
      await eventually(() => expect(stream.events).to.have.length(10))
      failing.refuses = refuses
      await publish()
      await eventually(() => expect(failing.refused).to.be.above(0))
      await lose(10)
      for (let times = 0; times < (passed === 'more' ? 12 : 10); times++) await publish()
      failing.refuses = () => false
      over.emit('now')
      expect(await stream.ended).to.equal(true)
      expect(stream.events).to.have.length(10)
      expect(failing.errors).to.equal(1)
      const lastEventId = stream.lastEventId()!
      const resumed = await readStream(failing.api.url, member.organisationId, {
        apiKey: member.apiKey,
        lastEventId,
      })
      await eventually(() => expect(resumed.events[0]?.event).to.equal('gap'))
      await resumed.close()
      await failing.api.close()
    })

  it('has a gap where it was behind when an older database took its place', async () => {
    for (let times = 0; times < 10; times++) await publish()
    const { organisationId, apiKey } = member
    const published = await suite.database.dataSource.query<{ id: string }[]>(
      'SELECT id FROM event WHERE organisation_id = $1 ORDER BY sequence',
      [organisationId],
    )
    const lastEventId = published[2]!.id
    const failing = await createFailing()
    failing.refuses = isRead
    const stream = await readStream(failing.api.url, organisationId, { apiKey, lastEventId })
    await eventually(() => expect(failing.refused).to.be.above(0))
    failing.refuses = () => true
    await lose(5)
    for (let times = 0; times < 20; times++) await publish()
    failing.refuses = (text) => !isRead(text)
    await eventually(() => expect(stream.events.map(({ event }) => event)).to.deep.equal(['gap']))
    failing.refuses = () => false
    expect(await stream.ended).to.equal(true)
    const resumed = await readStream(failing.api.url, organisationId, {
      apiKey,
      lastEventId: stream.lastEventId()!,
    })
    await eventually(() => expect(resumed.events[0]?.event).to.equal('gap'))
    await resumed.close()
    await failing.api.close()
  })

  it('is not opened, nor counted, when an older database takes its place meanwhile', async () => {
    await publish()
    await eventually(() => expect(reader.events).to.have.length(1))
    const { dataSource } = suite.database
    const moments = new EventEmitter()
    const held = Object.create(dataSource) as DataSource
    held.query = async <Row>(text: string, parameters?: unknown[]) => {
      if (text.includes('id = $2::uuid')) {
        moments.emit('lookup')
        await once(moments, 'regressed')
      }
      return dataSource.query<Row>(text, parameters)
    }
    const logger = { ...silentLogger, error: () => void moments.emit('regressed') }
    const api = await createTestApi(dataSource, {}, { dataSource: held, logger })
    const isLookedUp = once(moments, 'lookup')
    const opening = api.call('GET', `/api/orgs/${member.organisationId}/events/stream`, {
      apiKey: member.apiKey,
      headers: { 'last-event-id': reader.events[0]!.id! },
    })
    await isLookedUp
    await dataSource.query(`SELECT setval(pg_get_serial_sequence('event', 'sequence'), 1, false)`)
    expect(await opening).to.include({ status: 503 })
    // It waits until no stream is open.
    await api.close()
  })

  describe('with reads that wait for the database', () => {
    let api: TestApi
    let begun: unknown[]
    let ended: number
    let readers: StreamReader[]
    const released = new EventEmitter()

    beforeEach(async () => {
      begun = []
      ended = 0
      readers = []
      const held = Object.create(suite.database.dataSource) as DataSource
      held.query = async <Row>(text: string, parameters?: unknown[]) => {
        if (text.includes('event_horizon')) {
          begun.push(parameters?.[0])
          if (begun.length <= 4) await once(released, 'now')
        }
        return suite.database.dataSource.query<Row>(text, parameters)
      }
      const logger = {
        ...silentLogger,
        info: ({ event }: { event?: string }) => {
          if (event === 'stream.ended') ended++
        },
      }
      api = await createTestApi(held, {}, { logger })
    })
    afterEach(async () => {
      released.emit('now')
      await Promise.all(readers.map((stream) => stream.close()))
      await api.close()
    })

    /** An organisation with an event to resume from and one after it. Made before the feed of the process starts. */
    async function createBehind() {
      const { dataSource } = suite.database
      const { organisationId, apiKey } = await createMember(dataSource)
      for (let times = 0; times < 2; times++) await publishRow(dataSource, organisationId)
      const [first] = await dataSource.query<{ id: string }[]>(
        'SELECT id FROM event WHERE organisation_id = $1 ORDER BY sequence',
        [organisationId],
      )
      const open = () => readStream(api.url, organisationId, { apiKey, lastEventId: first!.id })
      return {
        open: async (count: number) =>
          void readers.push(...(await Promise.all(Array.from({ length: count }, open)))),
        reads: () => begun.filter((id) => id === organisationId).length,
      }
    }

    it('reads for each organisation in turn, and for one at most twice at once', async () => {
      const [many, few, one] = [await createBehind(), await createBehind(), await createBehind()]
      await many.open(12)
      await few.open(3)
      await eventually(() => expect([many.reads(), few.reads()]).to.deep.equal([2, 2]))
      await one.open(1)
      released.emit('now')
      await eventually(() => expect(begun).to.have.length(16))
      begun.length = 6
      expect(one.reads()).to.equal(1)
    })

    it('reads nothing for clients that have gone', async () => {
      const [many, few, one] = [await createBehind(), await createBehind(), await createBehind()]
      await many.open(12)
      await few.open(2)
      await eventually(() => expect([many.reads(), few.reads()]).to.deep.equal([2, 2]))
      await Promise.all(readers.splice(0).map((stream) => stream.close()))
      await eventually(() => expect(ended).to.equal(14))
      released.emit('now')
      await one.open(1)
      await eventually(() => expect(one.reads()).to.equal(1))
      expect([many.reads(), few.reads()]).to.deep.equal([2, 2])
    })
  })

  it('is asked every 10 ms at most while a transaction delays events, also when a client waits', async () => {
    const holder = await openTransaction(suite.database.dataSource)
    await holder.query('DELETE FROM event WHERE false')
    let reads = 0
    let isWanted = true
    const feed = createFeed({
      dataSource: suite.database.dataSource,
      logger: silentLogger,
      isWanted: () => isWanted,
      beforeReading() {
        reads++
        return Promise.resolve()
      },
      onRegressed: () => undefined,
    })
    const startedAtMs = performance.now()
    const started = feed.start().catch(() => undefined)
    await eventually(() => expect(reads).to.be.above(1))
    await feed.newest().catch(() => undefined)
    expect(reads).to.be.at.most((performance.now() - startedAtMs) / 10 + 5)
    isWanted = false
    await started
    await holder.rollbackTransaction()
    await holder.release()
    await feed.ended()
  })

  it('warns once of a transaction that delays events, by its name in PostgreSQL; the documented query finds it alone', async () => {
    const warnings: unknown[] = []
    const warn = (line: unknown): void => void warnings.push(line)
    const logger: ApiDependencies['logger'] = Object.assign(
      Object.create(silentLogger) as typeof silentLogger,
      { warn },
    )
    let now = 0
    const { dataSource } = suite.database
    const watermark = createWatermark({ dataSource, logger, nowMs: () => now })
    const before = await watermark.advance()
    const holder = await openTransaction(dataSource)
    await holder.query('DELETE FROM event WHERE false')
    const [held] = (await holder.query(
      `SELECT virtualtransaction AS id, pid FROM pg_locks WHERE pid = pg_backend_pid() LIMIT 1`,
    )) as { id: string; pid: number }[]
    await publish()
    for (now of [0, 9_000, 10_000, 60_000]) expect(await watermark.advance()).to.equal(before)
    expect(warnings).to.deep.equal([{ event: 'stream.delayed', transactions: [held!.id] }])
    const maintenance = await openTransaction(dataSource)
    await maintenance.query('LOCK TABLE event IN SHARE UPDATE EXCLUSIVE MODE')
    const documented = codeBlocksOf(readDocument('docs/troubleshooting.md'))
    const { text } = documented.find(({ heading }) => heading === 'Event streams are delayed')!
    const found = await dataSource.query<{ pid: number }[]>(text)
    expect(found.map(({ pid }) => pid)).to.deep.equal([held!.pid])
    for (const runner of [maintenance, holder]) {
      await runner.rollbackTransaction()
      await runner.release()
    }
    expect((await watermark.advance())!.sequence).to.be.above(before!.sequence)
  })
})

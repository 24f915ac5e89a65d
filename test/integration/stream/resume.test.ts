import { expect } from 'chai'
import { purge } from '../../../src/retention/purge.ts'
import { newId } from '../../../src/ids.ts'
import { createTestApi, type TestApi, useApi } from '../../helpers/api/api.ts'
import { openTransaction, recording } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createMember, publishRow, type TestMember } from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { readStream, type StreamOptions, type StreamReader } from '../../helpers/stream/stream-reader.ts'

describe('a stream that is resumed', () => {
  const suite = useApi()
  let other: TestApi
  let member: TestMember
  let readers: StreamReader[] = []

  before(async () => {
    other = await createTestApi(suite.database.dataSource)
  })
  after(() => other.close())
  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })
  afterEach(async () => {
    await Promise.all(readers.map((reader) => reader.close()))
    readers = []
  })

  async function open(
    { organisationId = member.organisationId, ...options }: StreamOptions & { organisationId?: string } = {},
    api = suite.api,
  ): Promise<StreamReader> {
    const reader = await readStream(api.url, organisationId, { apiKey: member.apiKey, ...options })
    expect(reader.status).to.equal(200)
    readers.push(reader)
    return reader
  }
  const publish = async (count: number, eventKey = 'customer:created'): Promise<void> => {
    for (let made = 0; made < count; made++)
      await publishRow(suite.database.dataSource, member.organisationId, { eventKey })
  }
  /** Ids of the organisation's events in the order of the database. */
  const stored = async (): Promise<string[]> => {
    const found = await suite.database.dataSource.query<{ id: string }[]>(
      `SELECT id FROM event WHERE organisation_id = $1 AND key <> 'webhook:test' ORDER BY sequence`,
      [member.organisationId],
    )
    return found.map(({ id }) => id)
  }
  const purgeOld = () =>
    purge(
      {
        dataSource: suite.database.dataSource,
        logger: silentLogger,
      },
      { completedDays: 30, failedDays: 90, auditDays: 365 },
      new AbortController().signal,
    )
  const idsOf = ({ events }: StreamReader): (string | undefined)[] => events.map(({ id }) => id)
  const gapsOf = ({ events }: StreamReader) => events.filter(({ event }) => event === 'gap')

  it('continues after the last event, by the header or the parameter, in this process and in another', async () => {
    await publish(5)
    const ids = await stored()
    const byHeader = await open({ lastEventId: ids[1]! })
    const byParameter = await open({ query: { lastEventId: ids[1]!.toUpperCase() } })
    const elsewhere = await open({ lastEventId: ids[1]! }, other)
    const headerFirst = await open({ lastEventId: ids[3]!, query: { lastEventId: ids[0]! } })
    await publish(3)
    const all = await stored()
    for (const reader of [byHeader, byParameter, elsewhere])
      await eventually(() => expect(idsOf(reader)).to.deep.equal(all.slice(2)))
    await eventually(() => expect(idsOf(headerFirst)).to.deep.equal(all.slice(4)))
  })

  it('continues after more events than one page holds, with its own keys only', async () => {
    await publish(1)
    const [first] = await stored()
    await suite.database.dataSource.query(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       SELECT uuidv7(), $1, CASE WHEN n % 2 = 0 THEN 'invoice:paid' ELSE 'call:created' END, '{}', now(), 't'
         FROM generate_series(1, 1500) n`,
      [member.organisationId],
    )
    const reader = await open({ lastEventId: first!, query: { events: 'invoice:paid' } })
    await publish(1, 'invoice:paid')
    await eventually(() => expect(reader.events).to.have.length(751))
    expect(new Set(idsOf(reader)).size).to.equal(751)
    expect(new Set(reader.events.map(({ event }) => event))).to.deep.equal(new Set(['invoice:paid']))
  })

  it('advances over millions of events that are not for it in reads of a bounded range', async () => {
    await publish(1)
    const { dataSource } = suite.database
    await dataSource.query(`SELECT setval(pg_get_serial_sequence('event', 'sequence'),
                                          nextval(pg_get_serial_sequence('event', 'sequence')) + 2000000)`)
    await publish(1)
    const statements: string[] = []
    const api = await createTestApi(recording(dataSource, statements))
    const ids = await stored()
    const reader = await open({ lastEventId: ids[0]! }, api)
    await eventually(() => expect(idsOf(reader)).to.deep.equal([ids[1]]))
    await api.close()
    expect(statements.filter((statement) => statement.includes('event_horizon'))).to.have.length(41)
  })

  const positionOf = (reader: StreamReader): Promise<string> =>
    eventually(() => {
      const id = reader.lastEventId()
      expect(id).to.be.a('string')
      return id!
    }, 1_000)

  it('has a position at once, whatever is visible, and misses nothing when it is resumed before its first event', async () => {
    const { organisationId } = member
    const permissions = ['comment:read']
    const poor = await createMember(suite.database.dataSource, { organisationId, permissions })
    const inEmpty = await positionOf(await open({ apiKey: poor.apiKey }))
    await publish(120)
    const behindOthers = await positionOf(await open({ apiKey: poor.apiKey }, other))
    await publish(1, 'comment:created')
    const id = (await stored()).at(-1)
    for (const lastEventId of [inEmpty, behindOthers])
      for (const api of [suite.api, other]) {
        const reader = await open({ apiKey: poor.apiKey, lastEventId }, api)
        await eventually(() => expect(idsOf(reader)).to.deep.equal([id]))
      }
  })

  it('has its position while a transaction delays all events', async () => {
    await open()
    const holder = await openTransaction(suite.database.dataSource)
    await holder.query('DELETE FROM event WHERE false')
    await publish(1)
    await positionOf(await open())
    await holder.rollbackTransaction()
    await holder.release()
  })

  it('reveals with its position neither how many events there are nor whether there are new ones', async () => {
    const [first, second] = [await positionOf(await open()), await positionOf(await open())]
    await publish(50)
    const third = await positionOf(await open())
    expect(new Set([first, second, third]).size).to.equal(3)
    expect(new Set([first, second, third].map(({ length }) => length)).size).to.equal(1)
  })

  it('misses no event whose transaction ends after those of later events', async () => {
    const reader = await open()
    const late = await openTransaction(suite.database.dataSource)
    // Its number is taken now; it can be read only after the commit.
    const lateId = newId()
    await late.query(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       VALUES ($1, $2, 'customer:created', '{"late":true}', now(), 't')`,
      [lateId, member.organisationId],
    )
    await publish(3)
    // Opened meanwhile, it may not begin after what was begun before.
    const meanwhile = await open()
    expect(reader.events).to.deep.equal([])
    await late.commitTransaction()
    await late.release()
    const ids = await stored()
    expect(ids[0]).to.equal(lateId)
    await eventually(() => expect(idsOf(reader)).to.deep.equal(ids))
    await publish(1)
    await eventually(async () => expect(idsOf(reader)).to.deep.equal(await stored()))
    await eventually(async () => expect(idsOf(meanwhile)).to.deep.equal(await stored()))
  })

  it('is not delayed by an event whose transaction is rolled back, nor by a transaction that writes something else', async () => {
    const reader = await open()
    const { dataSource } = suite.database
    const [aborted, elsewhere] = [await openTransaction(dataSource), await openTransaction(dataSource)]
    await elsewhere.query(`UPDATE organisation SET name = 'x' WHERE id = $1`, [member.organisationId])
    await aborted.query(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       VALUES (uuidv7(), $1, 'customer:created', '{}', now(), 't')`,
      [member.organisationId],
    )
    await publish(1)
    await aborted.rollbackTransaction()
    await eventually(async () => expect(idsOf(reader)).to.deep.equal(await stored()))
    expect(reader.events).to.have.length(1)
    await elsewhere.rollbackTransaction()
    await Promise.all([aborted.release(), elsewhere.release()])
  })

  for (const [what, unknown] of [
    ['an unknown event', newId()],
    ['a malformed id', '12345'],
    ['a position of another installation', `1${'|0123456789abcdef'.repeat(3)}`],
  ] as const)
    it(`sends one gap for ${what}, continues live, and can be resumed from there`, async () => {
      await publish(2)
      const reader = await open({ lastEventId: unknown })
      await publish(1)
      await eventually(() => expect(reader.events).to.have.length(2))
      const [gap, next] = reader.events
      expect(gap).to.include({ event: 'gap' })
      expect(JSON.parse(gap!.data)).to.include({ lastEventId: unknown })
      const ids = await stored()
      expect(next!.id).to.equal(ids[2])
      const again = await open({ lastEventId: gap!.id! })
      await eventually(() => expect(idsOf(again)).to.deep.equal([ids[2]]))
    })

  it('takes no position with a line break in it, and sends none back', async () => {
    const first = await open()
    await eventually(() => expect(first.lastEventId()).to.not.equal(null))
    const lastEventId = first.lastEventId()!.replace('|', '|\n')
    const reader = await open({ query: { lastEventId } })
    await eventually(() => expect(gapsOf(reader)).to.have.length(1))
    expect(JSON.parse(gapsOf(reader)[0]!.data)).to.include({ lastEventId })
  })

  it('answers for a foreign event or position as for an unknown one', async () => {
    await publish(1)
    const stranger = await createMember(suite.database.dataSource)
    await publishRow(suite.database.dataSource, stranger.organisationId)
    const [foreign] = await suite.database.dataSource.query<{ id: string }[]>(
      'SELECT id FROM event WHERE organisation_id = $1',
      [stranger.organisationId],
    )
    const theirs = await open({ apiKey: stranger.apiKey, organisationId: stranger.organisationId })
    const texts: string[] = []
    for (const lastEventId of [foreign!.id, newId(), await positionOf(theirs)]) {
      const reader = await open({ lastEventId })
      await eventually(() => expect(gapsOf(reader)).to.have.length(1))
      const [gap] = gapsOf(reader)
      texts.push(reader.bytes().toString().replaceAll(lastEventId, 'ID').replaceAll(gap!.id!, 'POSITION'))
    }
    expect(new Set(texts).size).to.equal(1)
  })

  it('sends one gap when retention has deleted events after its position, and only then', async () => {
    const live = await open({})
    await publish(4)
    const ids = await stored()
    // What is as old as retention wants it was read by every process long ago.
    await eventually(() => expect(idsOf(live)).to.include(ids[3]))
    const { dataSource } = suite.database
    await dataSource.query(`UPDATE event SET created_at = now() - interval '1 year' WHERE id = ANY($1)`, [
      [ids[0], ids[2]],
    ])
    await purgeOld()
    expect(await stored()).to.deep.equal([ids[1], ids[3]])
    const [before, at, after] = await Promise.all([
      open({ lastEventId: ids[1]! }),
      open({ lastEventId: ids[2]! }),
      open({ lastEventId: ids[3]! }),
    ])
    await publish(1)
    const newest = (await stored()).at(-1)
    for (const reader of [before, at]) {
      await eventually(() => expect(idsOf(reader).slice(1)).to.deep.equal([newest]))
      expect(reader.events[0]!.event).to.equal('gap')
    }
    await eventually(() => expect(idsOf(after)).to.deep.equal([newest]))
  })

  it('sends no gap when retention has deleted only what came before its position', async () => {
    const live = await open()
    await publish(3)
    await eventually(() => expect(live.events).to.have.length(3))
    const lastEventId = await positionOf(await open())
    await suite.database.dataSource.query(
      `UPDATE event SET created_at = now() - interval '1 year' WHERE organisation_id = $1`,
      [member.organisationId],
    )
    await purgeOld()
    expect(await stored()).to.deep.equal([])
    const reader = await open({ lastEventId })
    await publish(1)
    await eventually(async () => expect(idsOf(reader)).to.deep.equal(await stored()))
  })
})

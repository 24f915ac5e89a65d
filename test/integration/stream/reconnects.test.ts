import { expect } from 'chai'
import { purge } from '../../../src/retention/purge.ts'
import { createDice } from '../../faults/play/dice.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { createMember } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { createEventHistory, type EventHistory } from '../../helpers/stream/event-history.ts'
import {
  type RestlessClient,
  startRestlessClient,
  streamFaults,
} from '../../helpers/stream/restless-client.ts'
import { readStream, type StreamReader } from '../../helpers/stream/stream-reader.ts'

const STEPS = 150
const CLIENTS_OF_EACH_KIND = 3
const BEAT_MS = 30

/** How often retention deletes, in steps of the publisher. */
const PURGE_STEPS = 10

/** What a client may see, what it asks for, and what it is to be sent. */
const KINDS: { permissions?: string[]; events?: string; keys: string[] }[] = [
  { keys: ['customer:created', 'invoice:paid', 'call:created', 'comment:created'] },
  { events: 'invoice:paid', keys: ['invoice:paid'] },
  { permissions: ['customer:read'], keys: ['customer:created'] },
  { permissions: [], keys: [] },
  { permissions: ['webhook:read', 'comment:read'], keys: ['comment:created'] },
]

describe('clients of the stream that come and go', () => {
  const database = useDatabase()
  let apis: TestApi[] = []
  let clients: { client: RestlessClient; keys: Set<string> }[] = []
  let witnesses: StreamReader[] = []

  beforeEach(async () => {
    const open = () => createTestApi(database.dataSource, {}, { times: { beatMs: BEAT_MS } })
    apis = [await open(), await open()]
  })
  afterEach(async () => {
    await Promise.all(clients.map(({ client }) => client.close()))
    await Promise.all(witnesses.map((witness) => witness.close()))
    await Promise.all(apis.map((api) => api.close()))
    clients = []
    witnesses = []
  })

  for (const [seed, processes, hasRetention] of [
    [1, 1, false],
    [2, 2, false],
    [3, 2, true],
  ] as const) {
    const where = processes === 1 ? 'one process' : 'two processes'
    const deleted = hasRetention ? ', and a gap for what retention deleted' : ''
    it(`get each visible event once from ${where}${deleted} (seed ${seed})`, async () => {
      const dice = createDice(seed)
      const { organisationId, apiKey } = await createMember(database.dataSource)
      const { organisationId: strangerId } = await createMember(database.dataSource)
      const history = createEventHistory(database.dataSource, dice.fork(), { organisationId, strangerId })
      const urls = apis.slice(0, processes).map(({ url }) => url)
      witnesses = await Promise.all(urls.map((url) => readStream(url, organisationId, { apiKey })))
      let step = 0
      const enter = async (kind: (typeof KINDS)[number]): Promise<void> => {
        const { permissions, events, keys } = kind
        const member = await createMember(database.dataSource, {
          organisationId,
          ...(permissions === undefined ? {} : { permissions }),
        })
        const client = startRestlessClient({
          urls,
          organisationId,
          stream: { apiKey: member.apiKey, ...(events === undefined ? {} : { query: { events } }) },
          dice: dice.fork(),
          steps: () => step,
          begun: () => history.events.length,
        })
        clients.push({ client, keys: new Set(keys) })
      }
      // Some come to an organisation without any event, others while events are published.
      for (const kind of KINDS) await enter(kind)
      await eventually(() => expect(clients.every(({ client }) => client.since() < Infinity)).to.equal(true))
      for (; step < STEPS; step++) {
        await history.step()
        if (step % 25 === 0 && clients.length < KINDS.length * CLIENTS_OF_EACH_KIND)
          await enter(KINDS[clients.length % KINDS.length]!)
        if (hasRetention && step % PURGE_STEPS === 0) await deleteSome(history)
      }
      await history.finish()
      await Promise.all(clients.map(({ client }) => client.settle()))
      for (const [index, { client, keys }] of clients.entries())
        await eventually(() => {
          const faults = streamFaults(history.events, keys, {
            received: client.received,
            since: client.since(),
          })
          expect(faults.slice(0, 5), `client ${index}: ${faults.length} faults`).to.deep.equal([])
        })
      expect(clients.map(({ client }) => client.hadPosition())).to.deep.equal(clients.map(() => true))
      const gaps = clients.flatMap(({ client }) => client.received.filter((id) => id === 'gap'))
      if (hasRetention) expect(gaps.length).to.be.above(0)
      else expect(gaps).to.deep.equal([])
    })
  }

  /** Lets retention delete a third of the events that every process has read: in life, they are days old. */
  async function deleteSome({ events }: EventHistory): Promise<void> {
    const read = witnesses.map((witness) => new Set(witness.events.map(({ id }) => id)))
    const old = events.filter(({ id }) => read.every((ids) => ids.has(id)))
    const ids = old.filter((_event, index) => index % 3 === 0).map(({ id }) => id)
    await database.dataSource.query(
      `UPDATE event SET created_at = now() - interval '1 year' WHERE id = ANY($1)`,
      [ids],
    )
    const dependencies = {
      dataSource: database.dataSource,
      logger: silentLogger,
    }
    const limits = { completedDays: 30, failedDays: 90, auditDays: 365 }
    await purge(dependencies, limits, new AbortController().signal)
  }
})

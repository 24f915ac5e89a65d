import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { newId } from '../../src/ids.ts'
import { useDatabase } from '../helpers/database/database.ts'
import { createMember } from '../helpers/database/factories.ts'
import { startPosthorn } from '../helpers/processes/posthorn.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { readStream } from '../helpers/stream/stream-reader.ts'

const PUBLISHERS = 8
const EVENTS = 500
const IDLE = 500
const ROUNDS = 3

describe('the event stream under load', () => {
  const database = useDatabase()

  it('does not slow down publishers', async () => {
    const { organisationId, apiKey } = await createMember(database.dataSource)
    const posthorn = await startPosthorn({
      command: 'api',
      databaseUrl: database.url,
      temporalAddress: testServers().temporalAddress,
      taskQueue: `stream-${randomUUID()}`,
      env: { RATE_LIMIT_MANAGEMENT: '0' },
    })
    /** Publishes by several at once, every fifth event in a transaction of its own; returns the events of a second. */
    async function publish(): Promise<number> {
      let left = EVENTS
      const startedAt = performance.now()
      const publishOn = async (): Promise<void> => {
        while (left-- > 0) {
          const { status } = await posthorn.call('POST', `/api/orgs/${organisationId}/events`, {
            apiKey,
            body: { event: 'customer:created', data: { id: 'cus_1' } },
            ...(left % 5 === 0 ? { headers: { 'idempotency-key': newId() } } : {}),
          })
          expect(status).to.equal(202)
        }
      }
      await Promise.all(Array.from({ length: PUBLISHERS }, publishOn))
      return EVENTS / ((performance.now() - startedAt) / 1_000)
    }
    const open = () => readStream(posthorn.url, organisationId, { apiKey, query: { events: 'invoice:paid' } })
    await publish()
    const [none, idle]: [number[], number[]] = [[], []]
    for (let round = 0; round < ROUNDS; round++) {
      none.push(await publish())
      const readers = await Promise.all(Array.from({ length: IDLE }, open))
      idle.push(await publish())
      await Promise.all(readers.map((reader) => reader.close()))
    }
    await posthorn.stop()
    // The best of some: what else runs on the machine slows some of them.
    expect(Math.max(...idle) / Math.max(...none)).to.be.above(0.6)
  })
})

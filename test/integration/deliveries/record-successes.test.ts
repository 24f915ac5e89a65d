import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { recordFirstSuccesses, type AttemptRecord } from '../../../src/deliveries/protocol/record-attempts.ts'
import { createRecordFirstSuccess } from '../../../src/deliveries/attempt/record-outcome.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { createMember } from '../../helpers/database/factories.ts'
import { attemptRecord, useRows } from '../../helpers/deliveries/use-rows.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'

describe('outcomes of first attempts that are recorded in a batch', () => {
  const suite = useRows()
  const record = (delivery: CommittedDelivery, changes: Partial<AttemptRecord> = {}): AttemptRecord =>
    attemptRecord(delivery, { owner: randomUUID(), ...changes })

  /** Commits so many events for one webhook, whose deliveries are in progress. */
  async function publish(count: number): Promise<CommittedDelivery[]> {
    const webhook = await suite.webhook()
    const deliveries: CommittedDelivery[] = []
    for (let index = 0; index < count; index++) deliveries.push(await suite.publish(webhook, { room: 1 }))
    return deliveries
  }
  const states = async (deliveries: readonly CommittedDelivery[]): Promise<string[]> =>
    (await Promise.all(deliveries.map(suite.row))).map(({ state, attempts }) => `${state} ${attempts}`)

  /** In how many transactions the attempts of these deliveries, and their rows, were written. */
  const commits = async (deliveries: readonly CommittedDelivery[]): Promise<number> => {
    const found = await suite.database.dataSource.query<object[]>(
      `SELECT xmin::text FROM attempt WHERE delivery_id = ANY($1::uuid[])
        UNION SELECT xmin::text FROM delivery WHERE id = ANY($1::uuid[])`,
      [deliveries.map(({ deliveryId }) => deliveryId)],
    )
    return found.length
  }

  it('writes all valid outcomes in one transaction, and returns for each whether it was written', async () => {
    const { dataSource } = suite.database
    const deliveries = await publish(6)
    const [claimed, pending, recorded, stopped, foreign, completed] = deliveries as [
      CommittedDelivery,
      CommittedDelivery,
      CommittedDelivery,
      CommittedDelivery,
      CommittedDelivery,
      CommittedDelivery,
    ]
    await setRow(dataSource, pending.deliveryId, { state: 'pending' })
    await setRow(dataSource, recorded.deliveryId, { state: 'waiting' })
    await setRow(dataSource, stopped.deliveryId, { state: 'stopped' })
    await setRow(dataSource, completed.deliveryId, { state: 'completed' })
    const { organisationId } = await createMember(dataSource)
    // A confirmation counts, whichever run owns the row.
    const records = deliveries.map((delivery) => record(delivery))
    records[4] = { ...records[4]!, organisationId }
    const written = await recordFirstSuccesses(dataSource, records, null)
    expect(written).to.deep.equal([true, true, false, true, false, false])
    expect(await commits([claimed, pending, stopped])).to.equal(1)
    expect(await states(deliveries)).to.deep.equal([
      'completed 1',
      'completed 1',
      'waiting 1',
      'completed 1',
      'in_progress 0',
      'completed 1',
    ])
    for (const delivery of [claimed, pending, stopped])
      expect(await suite.attemptsOf(delivery)).to.have.length(1)
    for (const delivery of [recorded, foreign, completed])
      expect(await suite.attemptsOf(delivery)).to.have.length(0)
  })

  it('keeps every text unchanged, and an unread answer as null', async () => {
    const bodies = ['NULL', '', '{"a":"b,c"}', `\\"'\n\t`, 'é😀', '{}']
    const headers = { 'x-odd': `a"b\\c,{d}`, 'set-cookie': 'NULL' }
    const deliveries = await publish(bodies.length + 1)
    const records = deliveries.map((delivery, index) => {
      const body = bodies[index]
      const response = body === undefined ? null : { headers, body, truncated: index === 2 }
      return record(delivery, { response, trigger: index === 1 ? 'retry' : 'schedule' })
    })
    await recordFirstSuccesses(suite.database.dataSource, records, null)
    const kept = (await Promise.all(deliveries.map(suite.attemptsOf))).map((attempts) => attempts[0]!)
    expect(kept.map((attempt) => attempt['response_body'])).to.deep.equal([...bodies, null])
    expect(kept.map((attempt) => attempt['response_truncated'])).to.deep.equal(
      records.map(({ response }) => response?.truncated ?? false),
    )
    for (const attempt of kept.slice(0, -1)) expect(attempt['response_headers']).to.deep.equal(headers)
    expect(kept.at(-1)).to.include({
      response_headers: null,
      status_code: 204,
      duration_ms: 12,
      outcome: 'succeeded',
      failure_code: null,
      error: null,
      url: deliveries[0]!.url,
    })
    expect(kept.at(-1)!['started_at']).to.deep.equal(new Date('2026-01-02T03:04:05.678Z'))
    expect(kept[1]).to.include({ trigger: 'retry' })
  })

  it('shares commits among outcomes of the same instant', async () => {
    const deliveries = await publish(100)
    const recordOne = createRecordFirstSuccess(suite.database.dataSource, { followAfterMs: null })
    const written = await Promise.all(deliveries.map((delivery) => recordOne(record(delivery))))
    expect(written.every(Boolean)).to.equal(true)
    expect(await commits(deliveries)).to.be.within(1, 6)
    expect(new Set(await states(deliveries))).to.deep.equal(new Set(['completed 1']))
  })

  it('records the others one by one when the outcome of one of them cannot be written', async () => {
    const deliveries = await publish(20)
    const recordOne = createRecordFirstSuccess(suite.database.dataSource, { followAfterMs: null })
    const settled = await Promise.allSettled(
      deliveries.map((delivery, index) =>
        recordOne(record(delivery, index === 11 ? { statusCode: 2 ** 40 } : {})),
      ),
    )
    expect(settled.filter(({ status }) => status === 'rejected')).to.have.length(1)
    expect(settled[11]!.status).to.equal('rejected')
    const expected = deliveries.map((_, index) => (index === 11 ? 'in_progress 0' : 'completed 1'))
    expect(await states(deliveries)).to.deep.equal(expected)
  })
})

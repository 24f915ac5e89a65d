import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { recordFirstSuccesses, type AttemptRecord } from '../../../src/db/queries/outcomes.ts'
import { createRecordFirstSuccess } from '../../../src/deliveries/attempt/record-successes.ts'
import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import { createMember, TEST_PROCESS } from '../../helpers/database/factories.ts'
import { attemptRecord } from '../../helpers/deliveries/attempt-record.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'

describe('outcomes of first attempts that are recorded in a batch', () => {
  const suite = useInlineAttempts()
  const change = (deliveryId: string, assignments: string) =>
    suite.database.dataSource.query(`UPDATE delivery SET ${assignments} WHERE id = $1`, [deliveryId])
  const record = (delivery: DeliveryToStart, changes: Partial<AttemptRecord> = {}): AttemptRecord =>
    attemptRecord(delivery, { owner: TEST_PROCESS, underLease: true, ...changes })

  /** In how many transactions the attempts of these deliveries, and their rows, were written. */
  const commits = async (deliveries: readonly DeliveryToStart[]): Promise<number> => {
    const found = await suite.database.dataSource.query<object[]>(
      `SELECT xmin::text FROM attempt WHERE delivery_id = ANY($1::uuid[])
        UNION SELECT xmin::text FROM delivery WHERE id = ANY($1::uuid[])`,
      [deliveries.map(({ deliveryId }) => deliveryId)],
    )
    return found.length
  }

  it('writes all valid outcomes in one transaction, and returns for each whether it was written', async () => {
    const endpoint = await suite.endpoint()
    const [pending, claimed, recorded, stopped, foreignOwner, foreign, completed] = (await endpoint.publish(
      7,
    )) as [
      DeliveryToStart,
      DeliveryToStart,
      DeliveryToStart,
      DeliveryToStart,
      DeliveryToStart,
      DeliveryToStart,
      DeliveryToStart,
    ]
    await change(claimed.deliveryId, `state = 'in_progress', claims = 1`)
    await change(recorded.deliveryId, `state = 'waiting', attempts = 1`)
    await change(stopped.deliveryId, `state = 'stopped', completed_at = now()`)
    await change(completed.deliveryId, `state = 'completed', attempts = 1, completed_at = now()`)
    const { organisationId } = await createMember(suite.database.dataSource)
    const written = await recordFirstSuccesses(
      suite.database.dataSource,
      [
        record(pending),
        record(recorded),
        record(claimed, { underLease: false }),
        record(foreign, { organisationId }),
        record(stopped),
        // A confirmation counts, whichever run owns the row.
        record(foreignOwner, { owner: randomUUID(), underLease: false }),
        record(completed),
      ],
      false,
    )
    expect(written).to.deep.equal([true, false, true, false, true, true, false])
    expect(await commits([pending, claimed, stopped, foreignOwner])).to.equal(1)
    expect(await suite.count(`state = 'completed' AND attempts = 1`)).to.equal(5)
    for (const { deliveryId } of [pending, claimed, stopped, foreignOwner])
      expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
    for (const { deliveryId } of [recorded, foreign, completed])
      expect(await suite.attemptsOf(deliveryId)).to.have.length(0)
    expect(await suite.row(foreign.deliveryId)).to.include({ state: 'pending', attempts: 0 })
  })

  it('keeps every text unchanged, and an unread answer as null', async () => {
    const endpoint = await suite.endpoint()
    const bodies = ['NULL', '', '{"a":"b,c"}', `\\"'\n\t`, 'é😀', '{}']
    const headers = { 'x-odd': `a"b\\c,{d}`, 'set-cookie': 'NULL' }
    const deliveries = await endpoint.publish(bodies.length + 1)
    const records = deliveries.map((delivery, index) => {
      const body = bodies[index]
      const response = body === undefined ? null : { headers, body, truncated: index === 2 }
      return record(delivery, { response, trigger: index === 1 ? 'retry' : 'schedule' })
    })
    await recordFirstSuccesses(suite.database.dataSource, records, false)
    const kept = (await Promise.all(deliveries.map(({ deliveryId }) => suite.attemptsOf(deliveryId)))).map(
      (attempts) => attempts[0]!,
    )
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
      url: endpoint.receiver.url,
    })
    expect(kept.at(-1)!['started_at']).to.deep.equal(new Date('2026-01-02T03:04:05.678Z'))
    expect(kept[1]).to.include({ trigger: 'retry' })
  })

  it('marks deliveries without a workflow for the backfill when requested', async () => {
    const endpoint = await suite.endpoint()
    const [inline, started] = (await endpoint.publish(2)) as [DeliveryToStart, DeliveryToStart]
    await change(started.deliveryId, 'started_at = now()')
    await recordFirstSuccesses(suite.database.dataSource, [record(inline), record(started)], true)
    expect((await suite.row(inline.deliveryId)).sweep_at).not.to.equal(null)
    expect((await suite.row(started.deliveryId)).sweep_at).to.equal(null)
  })

  it('shares commits among outcomes of the same instant', async () => {
    const endpoint = await suite.endpoint()
    const deliveries = await endpoint.publish(100)
    const recordOne = createRecordFirstSuccess(suite.database.dataSource, { hasBackfill: false })
    const written = await Promise.all(deliveries.map((delivery) => recordOne(record(delivery))))
    expect(written.every(Boolean)).to.equal(true)
    expect(await commits(deliveries)).to.be.within(1, 6)
    expect(await suite.count(`state = 'completed'`)).to.equal(100)
  })

  it('records the others one by one when the outcome of one of them cannot be written', async () => {
    const endpoint = await suite.endpoint()
    const deliveries = await endpoint.publish(20)
    const recordOne = createRecordFirstSuccess(suite.database.dataSource, { hasBackfill: false })
    const settled = await Promise.allSettled(
      deliveries.map((delivery, index) =>
        recordOne(record(delivery, index === 11 ? { statusCode: 2 ** 40 } : {})),
      ),
    )
    expect(settled.filter(({ status }) => status === 'rejected')).to.have.length(1)
    expect(settled[11]!.status).to.equal('rejected')
    expect(await suite.count(`state = 'completed'`)).to.equal(19)
    expect(await suite.row(deliveries[11]!.deliveryId)).to.include({ state: 'pending', attempts: 0 })
  })

  it('writes one of two outcomes of the same attempt', async () => {
    const endpoint = await suite.endpoint()
    const delivery = await endpoint.publishOne()
    const { dataSource } = suite.database
    const written = await Promise.all(
      [1, 2, 3].map(() => recordFirstSuccesses(dataSource, [record(delivery)], false)),
    )
    expect(written.flat().filter(Boolean)).to.have.length(1)
    expect(await suite.attemptsOf(delivery.deliveryId)).to.have.length(1)
  })
})

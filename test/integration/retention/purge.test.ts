import { mock } from 'node:test'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { purge } from '../../../src/retention/purge.ts'
import type { DeliveryState } from '../../../src/domain/delivery-state.ts'
import { eraseBody } from '../../../src/db/queries/events.ts'
import { markErased } from '../../../src/deliveries/protocol/change-deliveries.ts'
import { openIncident } from '../../../src/db/queries/incidents.ts'
import { findEvaluationInputs, findIncident } from '../../../src/db/queries/notifications.ts'
import { findUnpurged } from '../../../src/db/queries/retention.ts'
import { newId } from '../../../src/ids.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { eventually } from '../../helpers/eventually.ts'
import { requestRetry } from '../../helpers/deliveries/request-retry.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const LIMITS = { completedDays: 30, failedDays: 90, auditDays: 365 }

describe('retention', () => {
  const database = useDatabase()
  let dataSource: DataSource
  let member: TestMember
  let webhookIds: string[]

  before(async () => {
    dataSource = database.dataSource
    member = await createMember(dataSource)
  })
  beforeEach(async () => {
    await dataSource.query('TRUNCATE webhook, event, idempotency_key CASCADE')
    const options = { organisationId: member.organisationId, url: 'https://hooks.example.org/' }
    const webhooks = await Promise.all([
      createWebhookRow(dataSource, options),
      createWebhookRow(dataSource, options),
    ])
    webhookIds = webhooks.map(({ id }) => id)
  })

  const purgeNow = (limits = LIMITS, source = dataSource) =>
    purge({ dataSource: source, logger: silentLogger }, limits, new AbortController().signal)
  const insertEvents = async (count: number, age: string): Promise<string[]> => {
    const made = await dataSource.query<{ id: string }[]>(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id, created_at)
       SELECT uuidv7(), $1, 'customer:created', '{}', now(), 'trace', now() - $3::interval
         FROM generate_series(1, $2) RETURNING id`,
      [member.organisationId, count, age],
    )
    return made.map(({ id }) => id)
  }
  /**
   * One delivery for each of the events, with one attempt unless it is pending, created a year ago; `age` is that of its
   * end, null where it has not ended.
   */
  const insertDeliveries = async (
    eventIds: string[],
    state: DeliveryState,
    age: string | null,
    { webhook = 0, sweepAt = null }: { webhook?: number; sweepAt?: Date | null } = {},
  ): Promise<string[]> => {
    const made = await dataSource.query<{ id: string }[]>(
      `WITH made AS (
         INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, sweep_at, created_at, completed_at,
                               stop_reason, runs, owner, lease_until, next_attempt_at)
         SELECT uuidv7(), e, $2, $3, $4, CASE $4 WHEN 'pending' THEN 0 ELSE 1 END,
                CASE WHEN $5::interval IS NULL THEN now() ELSE $6::timestamptz END,
                now() - interval '1 year', now() - $5::interval,
                CASE $4 WHEN 'stopped' THEN 'webhook_disabled' END,
                CASE $4 WHEN 'in_progress' THEN 1 ELSE 0 END,
                CASE $4 WHEN 'in_progress' THEN gen_random_uuid() END,
                CASE $4 WHEN 'in_progress' THEN now() END,
                CASE WHEN $4 IN ('in_progress', 'waiting') THEN now() END
           FROM unnest($1::uuid[]) e RETURNING id, webhook_id, attempts
       ), attempted AS (
         INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, outcome)
         SELECT id, webhook_id, 1, 'schedule', 'https://hooks.example.org/', now(), 1, 'failed' FROM made
          WHERE attempts > 0
       ) SELECT id FROM made`,
      [eventIds, webhookIds[webhook], member.organisationId, state, age, sweepAt],
    )
    return made.map(({ id }) => id)
  }
  const insertDelivery = async (...args: [DeliveryState, string | null, { sweepAt?: Date }?]) => {
    const [eventId] = await insertEvents(1, '1 year')
    const [deliveryId] = await insertDeliveries([eventId!], ...args)
    return { eventId: eventId!, deliveryId: deliveryId! }
  }
  const insertAuditEntries = (ages: string[]): Promise<unknown> =>
    dataSource.query(
      `INSERT INTO audit_entry (id, organisation_id, at, action, details)
       SELECT uuidv7(), $1, now() - age, 'webhook.created', '{}' FROM unnest($2::interval[]) age`,
      [member.organisationId, ages],
    )
  const count = async (table: string, condition = 'true'): Promise<number> => {
    const [row] = await dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM ${table} WHERE ${condition}`,
    )
    return row!.count
  }

  const fates: [DeliveryState, string, 'keeps' | 'deletes'][] = [
    ['completed', '29 days 23:59', 'keeps'],
    ['completed', '30 days 00:01', 'deletes'],
    ['failed', '30 days 00:01', 'keeps'],
    ['failed', '89 days 23:59', 'keeps'],
    ['failed', '90 days 00:01', 'deletes'],
    ['stopped', '30 days 00:01', 'keeps'],
    ['stopped', '89 days 23:59', 'keeps'],
    ['stopped', '90 days 00:01', 'deletes'],
  ]
  for (const [state, age, fate] of fates) {
    it(`${fate} what has been ${state} for ${age}, with its attempts and payload`, async () => {
      await insertDelivery(state, age)
      const deleted = fate === 'deletes' ? 1 : 0
      expect(await purgeNow()).to.include({ deliveries: deleted, events: deleted, finished: true })
      for (const table of ['delivery', 'attempt', 'event'])
        expect(await count(table), table).to.equal(1 - deleted)
    })
  }

  it('takes each limit from its own setting', async () => {
    await insertDelivery('completed', '2 days')
    await insertDelivery('failed', '2 days')
    await insertDelivery('stopped', '2 days')
    await purgeNow({ ...LIMITS, completedDays: 3, failedDays: 1 })
    expect(await count('delivery', `state = 'completed'`)).to.equal(1)
    expect(await count('delivery')).to.equal(1)
  })

  it('never deletes a delivery that is in progress, however old', async () => {
    for (const state of ['pending', 'in_progress', 'waiting'] as const) await insertDelivery(state, null)
    expect(await purgeNow()).to.include({ deliveries: 0, events: 0 })
    expect(await count('delivery')).to.equal(3)
    expect(await count('attempt')).to.equal(2)
    expect(await count('event')).to.equal(3)
  })

  it('keeps a stopped delivery whose workflow is not signalled yet, but no completed one that owes one', async () => {
    for (const state of ['stopped', 'completed'] as const)
      await insertDelivery(state, '1 year', { sweepAt: new Date() })
    expect(await purgeNow()).to.include({ deliveries: 1 })
    expect(await count('delivery', `state = 'stopped'`)).to.equal(1)
  })

  it('keeps a delivery that a user is retrying', async () => {
    const { deliveryId } = await insertDelivery('failed', '1 year')
    await dataSource.transaction(async (retry) => {
      const requested = await requestRetry(retry, member.organisationId, webhookIds[0]!, deliveryId)
      expect(requested).to.include({ state: 'waiting' })
      expect(await purgeNow()).to.include({ deliveries: 0, finished: true })
    })
    expect(await purgeNow()).to.include({ deliveries: 0 })
    expect(await count('delivery', `state = 'waiting'`)).to.equal(1)
  })

  it('leaves an incident open when it deletes its last failed delivery', async () => {
    await insertDelivery('failed', '1 year')
    await dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at) VALUES ($1, $2, $3, now() - interval '1 year')`,
      [newId(), member.organisationId, webhookIds[0]],
    )
    expect(await purgeNow()).to.include({ deliveries: 1 })
    expect(await count('incident', 'closed_at IS NULL')).to.equal(1)
  })

  it('still counts no failure before the last success when it has deleted that', async () => {
    const incident = { id: newId(), organisationId: member.organisationId, webhookId: webhookIds[0]! }
    await insertDelivery('failed', '40 days')
    await insertDelivery('completed', '31 days')
    await dataSource.query(
      `UPDATE attempt SET started_at = completed_at, outcome = CASE state WHEN 'completed' THEN 'succeeded' ELSE 'failed' END
         FROM delivery WHERE delivery.id = delivery_id`,
    )
    await openIncident(dataSource, incident)
    const streak = async (): Promise<unknown> => {
      const row = await findIncident(dataSource, incident.organisationId, incident.id)
      return (await findEvaluationInputs(dataSource, row!)).streak
    }
    expect(await streak()).to.equal(null)
    expect(await purgeNow()).to.include({ deliveries: 1 })
    expect(await streak()).to.equal(null)
  })

  it('keeps an event until its last delivery goes', async () => {
    const events = await insertEvents(1, '1 year')
    await insertDeliveries(events, 'completed', '31 days')
    const [failed] = await insertDeliveries(events, 'failed', '31 days', { webhook: 1 })
    expect(await purgeNow()).to.include({ deliveries: 1, events: 0 })
    await dataSource.query(`UPDATE delivery SET completed_at = now() - interval '91 days' WHERE id = $1`, [
      failed,
    ])
    expect(await purgeNow()).to.include({ deliveries: 1, events: 1 })
  })

  it('keeps an event without subscribers for the longer of the limits', async () => {
    await insertEvents(1, '89 days 23:59')
    await insertEvents(1, '90 days 00:01')
    expect(await purgeNow()).to.include({ events: 1 })
    expect(await count('event', `created_at > now() - interval '90 days'`)).to.equal(1)
    expect(await purgeNow({ ...LIMITS, completedDays: 91, failedDays: 1 })).to.include({ events: 0 })
  })

  it('deletes retry jobs that were done thirty days ago, and no others', async () => {
    await dataSource.query(
      `WITH job AS (
         INSERT INTO retry_job (id, organisation_id, mode, requested_by, state, created_at)
         SELECT uuidv7(), $1, 'failed', $2, state, now() - age::interval
           FROM (VALUES ('done', '30 days 00:01'), ('done', '29 days 23:59'), ('running', '1 year')) of (state, age)
         RETURNING id
       ) INSERT INTO retry_job_webhook (job_id, webhook_id, total) SELECT id, $3, 1 FROM job`,
      [member.organisationId, member.memberId, webhookIds[0]],
    )
    expect(await purgeNow()).to.include({ retryJobs: 1 })
    expect(await count('retry_job', `state = 'done'`)).to.equal(1)
    expect(await count('retry_job_webhook')).to.equal(2)
  })

  it('deletes the answers of idempotency keys after a day', async () => {
    await dataSource.query(
      `INSERT INTO idempotency_key (organisation_id, member_id, operation, key, digest, created_at)
       SELECT $1, $2, 'publish', hours::text, '', now() - hours * interval '1 hour' FROM generate_series(22, 27) hours`,
      [member.organisationId, member.memberId],
    )
    expect(await purgeNow()).to.include({ idempotencyKeys: 3 })
    expect(await count('idempotency_key', `key IN ('22', '23', '24')`)).to.equal(3)
  })

  it('deletes batch after batch until nothing is left', async () => {
    const events = await insertEvents(2_500, '1 year')
    await insertDeliveries(events, 'completed', '31 days')
    await insertDeliveries(events, 'failed', '91 days', { webhook: 1 })
    await insertEvents(2_500, '91 days')
    expect(await purgeNow()).to.include({ deliveries: 5_000, events: 5_000, finished: true })
    for (const table of ['delivery', 'attempt', 'event']) expect(await count(table), table).to.equal(0)
  })

  it('deletes for fifty minutes at most, warns of what is left, and continues with the next run', async () => {
    await insertDeliveries(await insertEvents(2_500, '1 year'), 'completed', '31 days')
    const warned: unknown[] = []
    const logger = { ...silentLogger, warn: (line: object) => void warned.push(line) }
    const realNow = performance.now.bind(performance)
    let skippedMs = 0
    const now = mock.method(performance, 'now', () => realNow() + skippedMs)
    // Called before each batch; the first six are those of other tables.
    const throwIfAborted = (): void => void (skippedMs += 7 * 60_000)
    const signal = Object.assign(new AbortController().signal, { throwIfAborted })
    const purged = await purge({ dataSource, logger }, LIMITS, signal).finally(() => now.mock.restore())
    expect(purged).to.include({ deliveries: 2_000, finished: false })
    expect(warned).to.deep.equal([{ event: 'retention.purged', ...purged }])
    expect(await purgeNow()).to.include({ deliveries: 500, finished: true })
  })

  it('stops when it is aborted', async () => {
    await insertDelivery('completed', '31 days')
    const aborted = purge({ dataSource, logger: silentLogger }, LIMITS, AbortSignal.abort())
    expect(await aborted.catch((error: unknown) => error)).to.have.property('name', 'AbortError')
    expect(await count('delivery')).to.equal(1)
  })

  it('deletes each row once when several run at the same time, and the event with its last delivery', async () => {
    const events = await insertEvents(2_500, '1 year')
    await insertDeliveries(events, 'completed', '31 days')
    await insertDeliveries(events, 'failed', '91 days', { webhook: 1 })
    await insertDeliveries(await insertEvents(50, '1 year'), 'completed', '29 days')
    const turns = [...(await Promise.all([purgeNow(), purgeNow(), purgeNow()])), await purgeNow()]
    expect(turns.reduce((sum, { deliveries }) => sum + deliveries, 0)).to.equal(5_000)
    expect(turns.reduce((sum, turn) => sum + turn.events, 0)).to.equal(2_500)
    expect(await count('delivery')).to.equal(50)
    expect(await count('event')).to.equal(50)
  })

  it('passes over an event that is locked, with its deliveries, and a later run deletes them', async () => {
    const eventIds = await insertEvents(3, '1 year')
    await insertDeliveries(eventIds, 'completed', '31 days')
    const [replayed, eventId = ''] = eventIds
    const of = { organisationId: member.organisationId, eventId }
    await dataSource.transaction(async (manager) => {
      await manager.query('SELECT id FROM event WHERE id = $1 FOR KEY SHARE', [replayed])
      await eraseBody(manager, { ...of, by: member.memberId })
      expect(await purgeNow()).to.include({ deliveries: 1, events: 1, finished: true })
      await markErased(manager, of)
    })
    expect(await purgeNow()).to.include({ deliveries: 2, events: 2 })
  })

  it('deletes entries of the audit trail by hours, also where summer time ended lately', async () => {
    await insertAuditEntries(['719 hours 59 min', '720 hours 1 min'])
    const alone = await createDataSource({ url: database.url, poolSize: 1 }).initialize()
    // The clocks went back ten days ago, so that 30 days are 721 hours.
    await alone.query(
      `SELECT set_config('timezone', format('WIN0SUM,%s,%s', extract(doy FROM now() - interval '100 days') - 1,
                                            extract(doy FROM now() - interval '10 days') - 1), false)`,
    )
    const purging = purgeNow({ ...LIMITS, auditDays: 30 }, alone)
    expect(await purging.finally(() => alone.destroy())).to.include({ auditEntries: 1 })
  })

  it('runs the other steps where one fails, or has a batch that takes too long, and then fails with both errors', async () => {
    await insertDelivery('completed', '31 days')
    await insertAuditEntries(['10 days'])
    await dataSource.query(`
      INSERT INTO idempotency_key (organisation_id, member_id, operation, key, digest, created_at)
      VALUES ('${member.organisationId}', '${member.memberId}', 'publish', 'old', '', now() - interval '2 days');
      CREATE FUNCTION cancel() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'canceled' USING ERRCODE = 'query_canceled'; END $$;
      CREATE TRIGGER cancelled BEFORE DELETE ON idempotency_key FOR EACH ROW EXECUTE FUNCTION cancel()`)
    const failed: unknown = await purgeNow({ ...LIMITS, auditDays: 5 })
      .catch((error: unknown) => error)
      .finally(() => dataSource.query('DROP FUNCTION cancel() CASCADE'))
    expect(String(failed)).to.include('append-only').and.include('a batch took too long')
    expect(failed).to.have.nested.property('errors[0].cause.message', 'canceled')
    expect(await count('delivery')).to.equal(0)
  })

  it('finds old rows by indexes, without reading others', async () => {
    // What the connections of other tests have read is counted when they end.
    await dataSource.destroy()
    await dataSource.initialize()
    await eventually(async () => {
      const found = await dataSource.query<object[]>(
        'SELECT FROM pg_stat_activity WHERE datname = current_database()',
      )
      expect(found).to.have.length(1)
    })
    const events = await insertEvents(5_000, '1 day')
    await insertDeliveries(events, 'completed', '1 day')
    await insertDeliveries(events, 'failed', '40 days', { webhook: 1 })
    await insertDeliveries(await insertEvents(10, '31 days'), 'completed', '31 days')
    await dataSource.query('VACUUM ANALYZE delivery, event')
    // One connection: what it has read is counted when it reports that.
    const alone = await createDataSource({ url: database.url, poolSize: 1 }).initialize()
    const reads = async (): Promise<{ bySeqScan: number; byPurgeIndex: number }> => {
      await alone.query('SELECT pg_stat_force_next_flush()')
      const [read] = await alone.query<{ bySeqScan: number; byPurgeIndex: number }[]>(
        `SELECT (SELECT sum(seq_tup_read)::int FROM pg_stat_user_tables WHERE relname IN ('delivery', 'event', 'attempt'))
                  AS "bySeqScan",
                idx_tup_read::int AS "byPurgeIndex"
           FROM pg_stat_user_indexes WHERE indexrelname = 'delivery_purge_idx'`,
      )
      return read!
    }
    const before = await reads()
    expect(await findUnpurged(alone, LIMITS)).to.include({ state: 'completed', days: 30 })
    const [purged, after] = [await purgeNow(LIMITS, alone), await reads()]
    await alone.destroy()
    expect(purged).to.include({ deliveries: 10, events: 10 })
    expect(after.bySeqScan - before.bySeqScan).to.equal(0)
    expect(after.byPurgeIndex - before.byPurgeIndex).to.be.within(10, 30)
  })
})

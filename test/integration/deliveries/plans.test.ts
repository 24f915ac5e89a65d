import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { listBuckets, p95Duration } from '../../../src/db/queries/activity.ts'
import { countBacklog } from '../../../src/db/queries/backlog.ts'
import { findOverdue, findUnstarted } from '../../../src/db/queries/due-deliveries.ts'
import { listCovered } from '../../../src/db/queries/delivery-selection.ts'
import { listOverview } from '../../../src/db/queries/overview.ts'
import { deleteRowsOf, lockFinalDeliveries, stopForErasure } from '../../../src/db/queries/erasures.ts'
import { findFailures, findFailuresOfIncidents } from '../../../src/db/queries/failures.ts'
import { ACTIVITY_RANGES } from '../../../src/http/schemas/overview.ts'
import { stopUnwanted } from '../../../src/deliveries/protocol/change-deliveries.ts'
import { insertRetryJob } from '../../../src/db/queries/retry-jobs.ts'
import { newId } from '../../../src/ids.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { planOf } from '../../helpers/database/plan.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const WEBHOOKS = 20
const EVENTS = 3_000

describe('statements next to 60,000 deliveries', () => {
  const database = useDatabase()
  let api: TestApi
  let member: TestMember
  let webhookIds: string[]

  before(async () => {
    api = await createTestApi(database.dataSource)
    member = await createMember(database.dataSource)
    webhookIds = await fill(database.dataSource, member.organisationId)
  })
  after(() => api.close())

  it('answer GET /webhooks/delivery-stats', async () => {
    const answer = await api.call('GET', `/api/orgs/${member.organisationId}/webhooks/delivery-stats`, {
      apiKey: member.apiKey,
    })
    const { data } = answer.json as { data: object[] }
    expect(data).to.have.lengthOf(WEBHOOKS)
    for (const row of data)
      expect(row).to.include({ waitingForRetry: 120, permanentlyFailed: 30, stopped: 90 })
  })

  it('read counts and latest attempts from the indexes made for them, and no table from end to end', async () => {
    const { scanned, indexes } = await planOf(database.dataSource, (db) =>
      listOverview(db, member.organisationId),
    )
    expect(scanned.filter((table) => table === 'delivery' || table === 'attempt')).to.deep.equal([])
    expect(indexes).to.include.members([
      'delivery_failed_idx',
      'delivery_stopped_idx',
      'delivery_unstarted_idx',
      'delivery_started_idx',
      'attempt_succeeded_idx',
      'attempt_failed_idx',
    ])
    // Both contain waiting deliveries and little else; the planner chooses by the organisation's share.
    expect(indexes.some((name) => /^delivery_(waiting|sweep)_idx$/.test(name))).to.equal(true)
  })

  it('stop the deliveries of an erased event without reading the others that are open', async () => {
    const { organisationId } = member
    const [webhookId = ''] = webhookIds
    const stop = (eventId: string | null) =>
      planOf(database.dataSource, (db) => stopUnwanted(db, { organisationId, webhookId }, eventId))
    expect((await stop(null)).indexes).to.include('delivery_started_idx')
    const { indexes, pages } = await stop(newId())
    expect(indexes).to.include('delivery_event_idx').and.not.include('delivery_started_idx')
    expect(pages).to.be.below(10)
  })

  it('count the attempts of a week, of one webhook and of all, from the index of each outcome', async () => {
    const { organisationId } = member
    const [webhookId = ''] = webhookIds
    const week = ACTIVITY_RANGES['7d']
    const rangeMs = week.buckets * week.bucketMs
    for (const query of [
      (db: DataSource) => listBuckets(db, organisationId, webhookId, week),
      (db: DataSource) => listBuckets(db, organisationId, null, week),
      (db: DataSource) => p95Duration(db, organisationId, webhookId, rangeMs),
    ]) {
      const { scanned, indexes } = await planOf(database.dataSource, query)
      expect(scanned).to.not.include('attempt')
      expect(indexes).to.include.members(['attempt_succeeded_idx', 'attempt_failed_idx'])
    }
  })

  it('group the failures of a week, and of incidents, along the index of failed attempts', async () => {
    const { organisationId } = member
    const [webhookId = ''] = webhookIds
    const incidentIds = [newId(), newId()]
    await database.dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at, closed_at)
       SELECT id, $2, $3, now() - n * interval '1 day', CASE WHEN n > 1 THEN now() - interval '30 hours' END
         FROM unnest($1::uuid[]) WITH ORDINALITY i (id, n)`,
      [incidentIds, organisationId, webhookId],
    )
    for (const query of [
      (db: DataSource) => findFailures(db, organisationId, webhookId, 7 * 86_400_000),
      (db: DataSource) => findFailuresOfIncidents(db, organisationId, incidentIds),
    ]) {
      const { scanned, indexes, pages } = await planOf(database.dataSource, query)
      expect(scanned).to.not.include('attempt')
      expect(indexes).to.include('attempt_failed_idx')
      expect(pages).to.be.at.most(4_000)
    }
    const { failedAttempts, causes } = await findFailures(
      database.dataSource,
      organisationId,
      webhookId,
      11 * 86_400_000,
    )
    expect(failedAttempts).to.equal(240)
    expect(causes.map(({ failureCode, deliveries }) => [failureCode, deliveries])).to.deep.equal([
      ['http_status', 240],
    ])
  })

  it('page what a retry job resumes along an index', async () => {
    const { organisationId, memberId } = member
    const [webhookId = ''] = webhookIds
    await database.dataSource.query(
      `UPDATE delivery SET stop_reason = 'webhook_disabled' WHERE webhook_id = $1 AND state = 'stopped'`,
      [webhookId],
    )
    const job = {
      id: newId(),
      organisationId,
      webhookId: null,
      mode: 'stopped' as const,
      requestedBy: memberId,
    }
    expect(await insertRetryJob(database.dataSource, job)).to.include({ total: 90 })
    const page = { organisationId, webhookId, jobId: job.id, mode: job.mode, cursor: null, limit: 50 }
    const taken = await planOf(database.dataSource, (db) => listCovered(db, page), 2)
    expect(taken.scanned.filter((table) => table === 'delivery' || table === 'event')).to.deep.equal([])
    expect(taken.indexes).to.include('delivery_stopped_idx')
  })

  it('find what is to be swept, with a workflow and without one, along the index of each', async () => {
    for (let count = 0; count < 10; count++) await publishRow(database.dataSource, member.organisationId)
    await database.dataSource.query('ANALYZE delivery')
    for (const [find, index] of [
      [
        (db: DataSource) => findUnstarted(db, { limit: 200, defaultRoom: 200, rooms: [] }),
        'delivery_unstarted_idx',
      ],
      [(db: DataSource) => findOverdue(db, 50), 'delivery_started_idx'],
    ] as const) {
      const { scanned, indexes } = await planOf(database.dataSource, find)
      expect(scanned).not.to.include('delivery')
      expect(indexes).to.include(index)
      expect(indexes).not.to.include.members(['delivery_waiting_idx', 'delivery_webhook_idx'])
    }
  })

  it('erase an organisation without reading more of it than they change', async () => {
    const { organisationId } = member
    const stop = await planOf(database.dataSource, (db) => stopForErasure(db, webhookIds, 200))
    expect(stop.scanned).to.not.include('delivery')
    expect(stop.indexes).to.include('delivery_started_idx').and.not.include('delivery_webhook_idx')
    const lock = await planOf(database.dataSource, (db) => lockFinalDeliveries(db, webhookIds, 10))
    expect(lock.indexes).to.deep.equal(['delivery_webhook_idx'])
    const events = await planOf(database.dataSource, (db) => deleteRowsOf(db, 'event', organisationId, 10))
    expect(events.scanned).to.deep.equal([])
    expect(events.pages).to.be.below(100)
  })

  it('count the backlog without reading what is completed, and attempts of late webhooks only', async () => {
    const { scanned, indexes } = await planOf(database.dataSource, (db) => countBacklog(db))
    expect(scanned.filter((table) => table !== 'incident')).to.deep.equal([])
    expect(indexes).to.include.members(['delivery_started_idx', 'delivery_failed_idx'])
    for (const index of indexes)
      expect(index).to.match(
        /^(delivery_(started|unstarted|waiting|failed|follow)|incident_open|attempt_(failed|succeeded))_idx$/,
      )
  })
})

/**
 * Writes events that each went to every webhook: 92 % completed, 4 % waiting, 3 % stopped, 1 % permanently failed, one
 * recorded attempt each, over the last ten days.
 */
async function fill(dataSource: DataSource, organisationId: string): Promise<string[]> {
  const ids: string[] = []
  for (let index = 0; index < WEBHOOKS; index++) {
    const url = `https://receiver-${index}.example.com/hook`
    ids.push((await createWebhookRow(dataSource, { organisationId, url })).id)
  }
  await dataSource.query(
    `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id, created_at)
     SELECT uuidv7(age), $1, key,
            convert_to(json_build_object('event', key, 'data', json_build_object('text', repeat('x', 500)), 'timestamp', 0,
                                         'traceId', 'trace', 'triggeredBy', null)::text, 'UTF8'),
            now() + age, 'trace', now() + age
       FROM generate_series(1, $2) n,
            LATERAL (SELECT (n - $2 - 1) * interval '288 seconds' AS age,
                            CASE WHEN n % 3 = 0 THEN 'invoice:paid' ELSE 'customer:created' END AS key) e`,
    [organisationId, EVENTS],
  )
  await dataSource.query(
    `INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, next_attempt_at, sweep_at,
                           created_at, workflow_started_at, completed_at, stop_reason)
     SELECT uuidv7(e.created_at - now()), e.id, w.id, $1, state, 1,
            CASE WHEN state = 'waiting' THEN now() + interval '1 hour' END,
            CASE WHEN state = 'waiting' THEN now() + interval '2 hours' END,
            e.created_at, e.created_at, CASE WHEN state <> 'waiting' THEN e.created_at END,
            CASE WHEN state = 'stopped' THEN 'discarded' END
       FROM (SELECT *, row_number() OVER (ORDER BY id) % 100 AS hundredth FROM event) e
      CROSS JOIN webhook w
      CROSS JOIN LATERAL (SELECT CASE WHEN hundredth < 92 THEN 'completed' WHEN hundredth < 95 THEN 'stopped' WHEN hundredth < 99 THEN 'waiting'
                                      ELSE 'failed' END AS state) s
      ORDER BY e.id`,
    [organisationId],
  )
  await dataSource.query(
    `INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, outcome,
                          failure_code, status_code, error, response_headers, response_body)
     SELECT d.id, d.webhook_id, 1, 'schedule', w.url, d.created_at, 40,
            CASE WHEN good THEN 'succeeded' ELSE 'failed' END, CASE WHEN NOT good THEN 'http_status' END,
            CASE WHEN good THEN 200 ELSE 503 END, CASE WHEN NOT good THEN 'The endpoint answered HTTP 503.' END,
            '{"content-type":"text/plain"}', repeat('y', 100)
       FROM delivery d JOIN webhook w ON w.id = d.webhook_id
      CROSS JOIN LATERAL (SELECT d.state = 'completed' AS good) o`,
  )
  for (const table of ['event', 'delivery', 'attempt', 'webhook']) await dataSource.query(`ANALYZE ${table}`)
  return ids
}

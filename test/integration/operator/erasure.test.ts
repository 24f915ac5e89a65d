import { expect } from 'chai'
import { eraseOrganisation, type ErasureProgress } from '../../../src/accounts/erase-organisation.ts'
import { createOrganisationCheck } from '../../../src/accounts/caller-lookup.ts'
import { insertErasure } from '../../../src/db/queries/erasures.ts'
import { asOperator } from '../../helpers/api/operator.ts'
import { useApi } from '../../helpers/api/api.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { attempt } from '../deliveries/delivery-rows.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  TEST_VAPID_PUBLIC_KEY,
} from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

const ORGANISATIONS = '/api/operator/organisations'
const ZON = { name: 'Camping Zon', email: 'info@zon.example' }

describe('the erasure of an organisation', () => {
  const suite = useApi()
  let terminated: string[] = []

  const call = (method: string, id: string, body?: unknown) =>
    suite.api.call(
      method,
      `${ORGANISATIONS}/${id}`,
      asOperator('manager', body === undefined ? {} : { body }),
    )

  const dependencies = () => ({
    dataSource: suite.database.dataSource,
    logger: silentLogger,
    minErasureAgeMs: 0,
    termination: {
      ofDelivery: (id: string) => Promise.resolve(void terminated.push(id)),
      ofIncident: (_: string, id: string) => Promise.resolve(void terminated.push(id)),
    },
  })

  async function step(organisationId: string, overrides = {}): Promise<ErasureProgress> {
    return eraseOrganisation(
      { ...dependencies(), ...overrides },
      organisationId,
      new AbortController().signal,
    )
  }

  async function eraseAll(organisationId: string): Promise<void> {
    for (let steps = 0; steps < 20; steps++) if ((await step(organisationId)).isDone) return
    throw new Error('the erasure did not end')
  }

  /** An organisation with something in every table. */
  async function createWorld() {
    const { dataSource } = suite.database
    const member = await createMember(dataSource)
    const { organisationId, apiKey, memberId } = member
    const webhook = await createWebhookRow(dataSource, {
      organisationId,
      url: 'https://receiver.example.com/',
    })
    const base = `/api/orgs/${organisationId}`
    const request = (method: string, path: string, body?: unknown) =>
      suite.api.call(method, `${base}${path}`, { apiKey, ...(body === undefined ? {} : { body }) })
    const headers = { 'idempotency-key': 'k1' }
    const event = { event: 'customer:created', data: { id: 'cus_1' } }
    await suite.api.call('POST', `${base}/events`, { apiKey, body: event, headers })
    const [waiting] = await publishRow(dataSource, organisationId)
    await publishRow(dataSource, organisationId)
    await attempt(dataSource, suite.api.started.at(-1)!, 1)
    await suite.api.call('POST', '/api/session', { apiKey })
    await request('POST', '/events/stream-tickets')
    await request('POST', '/webhooks/retry-deliveries', { mode: 'force' })
    const keys = { p256dh: TEST_VAPID_PUBLIC_KEY, auth: 'A'.repeat(22) }
    await request('POST', '/push-subscriptions', { endpoint: 'https://push.example.com/a', keys })
    await dataSource.query(
      `WITH incident AS (
         INSERT INTO incident (id, organisation_id, webhook_id) VALUES (gen_random_uuid(), $1, $2)
         ON CONFLICT DO NOTHING RETURNING id
       ) INSERT INTO notification (id, incident_id, kind, channel, recipient)
         SELECT gen_random_uuid(), id, 1, 'email', 'info@test.example' FROM incident`,
      [organisationId, webhook.id],
    )
    // No process holds a lease any more, as after a crash.
    await dataSource.query(
      `UPDATE delivery SET lease_until = now() - interval '1 s'
        WHERE organisation_id = $1 AND state = 'in_progress'`,
      [organisationId],
    )
    return {
      organisationId,
      memberId,
      apiKey,
      webhookId: webhook.id,
      deliveryId: waiting!.deliveryId,
      request,
    }
  }

  /** Every table with what is left of the organisation in it. */
  async function leftOf(organisationId: string): Promise<Record<string, number>> {
    const { dataSource } = suite.database
    const tables = await dataSource.query<{ name: string }[]>(
      `SELECT table_name AS name FROM information_schema.columns
        WHERE column_name = 'organisation_id' AND table_schema = 'public'`,
    )
    const left: Record<string, number> = {}
    for (const { name } of tables) {
      const [{ count }] = await dataSource.query<[{ count: number }]>(
        `SELECT count(*)::int AS count FROM "${name}" WHERE organisation_id = $1`,
        [organisationId],
      )
      if (count > 0) left[name] = count
    }
    return left
  }

  beforeEach(() => {
    terminated = []
  })

  it('begins with an answer of 202, shows its progress, and ends with 404 and nothing left', async () => {
    const { organisationId, deliveryId } = await createWorld()
    const other = await createWorld()
    const before = await leftOf(other.organisationId)
    const begun = await call('DELETE', organisationId)
    expect(begun.status).to.equal(202)
    expect(begun.headers.get('location')).to.equal(`${ORGANISATIONS}/${organisationId}`)
    expect(begun.json).to.include({ id: organisationId, state: 'erasing' })

    await step(organisationId)
    const { json } = await call('GET', organisationId)
    expect(json).to.include({ state: 'erasing' })
    const { erased, retained } = (json as { erasure: { erased: Record<string, number>; retained: string[] } })
      .erasure
    expect(retained).to.deep.equal([])
    expect(erased['deliveries']).to.equal(3)
    expect(erased['events']).to.equal(3)
    expect(erased['attempts']).to.equal(1)
    expect(erased['incidents']).to.be.at.least(1)
    expect(terminated).to.include(deliveryId)

    await eraseAll(organisationId)
    expect((await call('GET', organisationId)).status).to.equal(404)
    expect((await call('DELETE', organisationId)).status).to.equal(404)
    expect(await leftOf(organisationId)).to.deep.equal({})
    expect(await leftOf(other.organisationId)).to.deep.equal(before)
  })

  it('makes the organisation unknown to its members and to publishing at once', async () => {
    const { organisationId, apiKey, request } = await createWorld()
    await call('DELETE', organisationId)
    for (const [method, path] of [
      ['GET', '/webhooks'],
      ['POST', '/events'],
      ['GET', '/audit'],
      ['GET', '/events/stream'],
    ] as const)
      expect((await request(method, path)).status, path).to.equal(404)
    expect((await suite.api.call('GET', '/api/event-keys', { apiKey })).status).to.equal(404)
    expect((await suite.api.call('POST', '/api/session', { apiKey })).status).to.equal(404)
    const body = { event: 'customer:created', data: { id: 'cus_1' } }
    const publish = asOperator('publisher', { body })
    expect((await suite.api.call('POST', `/api/orgs/${organisationId}/events`, publish)).status).to.equal(404)
    expect((await call('GET', `${organisationId}/members`)).status).to.equal(404)
    const member = { name: 'An', email: 'an@zon.example' }
    expect((await call('PUT', `${organisationId}/members/mem_an`, member)).status).to.equal(404)
    const [{ live }] = await suite.database.dataSource.query<[{ live: number }]>(
      `SELECT count(*)::int AS live FROM webhook
        WHERE organisation_id = $1 AND (deleted_at IS NULL OR secret IS NOT NULL)`,
      [organisationId],
    )
    expect(live).to.equal(0)
  })

  it('is requested once: again it changes nothing, and its id is taken until it is done', async () => {
    const { organisationId } = await createWorld()
    const [first, second] = await Promise.all([
      call('DELETE', organisationId),
      call('DELETE', organisationId),
    ])
    expect([first.status, second.status]).to.deep.equal([202, 202])
    expect(second.json).to.deep.equal(first.json)
    const put = await call('PUT', organisationId, ZON)
    expect([put.status, (put.json as { code: string }).code]).to.deep.equal([409, 'organisation_erasing'])
    await eraseAll(organisationId)
    expect((await call('PUT', organisationId, ZON)).status).to.equal(201)
    expect((await call('GET', organisationId)).json).to.include({ state: 'active' })
  })

  it('makes the organisation unknown also where the answer to an earlier request was lost', async () => {
    const { organisationId } = await createWorld()
    const { dataSource } = suite.database
    const requireOrganisation = createOrganisationCheck(dataSource)
    await requireOrganisation(organisationId)
    await insertErasure(dataSource, organisationId)
    expect((await call('DELETE', organisationId)).status).to.equal(202)
    const refused: unknown = await requireOrganisation(organisationId).catch((error: unknown) => error)
    expect(refused).to.have.nested.property('problem.status', 404)
  })

  it('goes on where it stood when a step breaks before a workflow has ended', async () => {
    const { organisationId, deliveryId } = await createWorld()
    await call('DELETE', organisationId)
    const broken = {
      ofIncident: () => Promise.resolve(),
      ofDelivery: () => Promise.reject(new Error('Temporal is away')),
    }
    const failure = await step(organisationId, { termination: broken }).catch((error: unknown) => error)
    expect(String(failure)).to.include('Temporal is away')
    await eraseAll(organisationId)
    expect(terminated).to.include(deliveryId)
    expect(await leftOf(organisationId)).to.deep.equal({})
  })

  it('fails where a statement takes too long, which would do so again', async () => {
    const { organisationId } = await createWorld()
    await call('DELETE', organisationId)
    const { dataSource } = suite.database
    await dataSource.query(`
      CREATE FUNCTION cancel() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'canceled' USING ERRCODE = 'query_canceled'; END $$;
      CREATE TRIGGER cancelled BEFORE UPDATE ON delivery FOR EACH ROW EXECUTE FUNCTION cancel()`)
    const failure: unknown = await step(organisationId)
      .catch((error: unknown) => error)
      .finally(() => dataSource.query('DROP FUNCTION cancel() CASCADE'))
    expect(String(failure)).to.include('a batch took too long')
    await eraseAll(organisationId)
  })

  it('ends the workflows of open deliveries, 200 in a step, before it deletes any', async () => {
    const { organisationId } = await createWorld()
    for (let count = 0; count < 200; count++) await publishRow(suite.database.dataSource, organisationId)
    await call('DELETE', organisationId)
    terminated = []
    expect((await step(organisationId)).erased.deliveries).to.equal(0)
    expect((await step(organisationId)).erased.deliveries).to.equal(203)
    await eraseAll(organisationId)
    expect(new Set(terminated).size).to.be.at.least(203)
  })

  it('erases closed incidents in batches beside all else, and ends the workflow of the open one only', async () => {
    const { organisationId, webhookId } = await createWorld()
    const { dataSource } = suite.database
    await dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at, closed_at)
       SELECT gen_random_uuid(), $1, $2, now() - interval '1 day', now() FROM generate_series(1, 1200)`,
      [organisationId, webhookId],
    )
    const open = await dataSource.query<{ id: string }[]>(
      'SELECT id FROM incident WHERE webhook_id = $1 AND closed_at IS NULL',
      [webhookId],
    )
    await call('DELETE', organisationId)
    const { erased } = await step(organisationId)
    expect(erased).to.include({ incidents: 1_000, deliveries: 3 })
    await eraseAll(organisationId)
    expect(terminated).to.include(open[0]!.id).and.to.have.lengthOf.below(20)
    expect(await leftOf(organisationId)).to.deep.equal({})
  })

  it('waits for an attempt under way', async () => {
    const { organisationId, deliveryId } = await createWorld()
    await call('DELETE', organisationId)
    const { dataSource } = suite.database
    await setRow(dataSource, deliveryId, { state: 'in_progress' })
    for (let steps = 0; steps < 4; steps++) expect((await step(organisationId)).isDone).to.equal(false)
    expect(terminated).to.not.include(deliveryId)
    await dataSource.query(`UPDATE delivery SET lease_until = now() WHERE id = $1`, [deliveryId])
    await eraseAll(organisationId)
    expect(terminated).to.include(deliveryId)
  })

  it('leaves the organisation itself until requests from before it have ended', async () => {
    const { organisationId } = await createWorld()
    await call('DELETE', organisationId)
    for (let steps = 0; steps < 4; steps++)
      expect((await step(organisationId, { minErasureAgeMs: 60_000 })).isDone).to.equal(false)
    await eraseAll(organisationId)
  })

  it('that is over leaves alone what was created under the same id since', async () => {
    const { organisationId } = await createWorld()
    await call('DELETE', organisationId)
    await eraseAll(organisationId)
    const { dataSource } = suite.database
    expect((await call('PUT', organisationId, ZON)).status).to.equal(201)
    await createWebhookRow(dataSource, { organisationId, url: 'https://receiver.example.com/' })
    const [delivery] = await publishRow(dataSource, organisationId)
    await attempt(dataSource, delivery!, 1)
    terminated = []
    expect((await step(organisationId)).isDone).to.equal(true)
    expect(terminated).to.deep.equal([])
    const rows = await dataSource.query<unknown[]>('SELECT state FROM delivery WHERE id = $1', [
      delivery!.deliveryId,
    ])
    expect(rows).to.deep.equal([{ state: 'waiting' }])
  })

  it('alone may delete young entries of the audit trail', async () => {
    const { organisationId } = await createWorld()
    const remove = () =>
      suite.database.dataSource.query('DELETE FROM audit_entry WHERE organisation_id = $1', [organisationId])
    const failure: unknown = await remove().catch((error: unknown) => error)
    expect(String(failure)).to.include('append-only')
    await call('DELETE', organisationId)
    await remove()
  })
})

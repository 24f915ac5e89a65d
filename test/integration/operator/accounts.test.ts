import { expect } from 'chai'
import { createCallerLookup } from '../../../src/accounts/caller-lookup.ts'
import { saveOrganisation } from '../../../src/accounts/organisations.ts'
import { openTransaction, untilWaitingForLock } from '../../helpers/database/database.ts'
import { asOperator } from '../../helpers/api/operator.ts'
import { useApi } from '../../helpers/api/api.ts'
import { createMember } from '../../helpers/database/factories.ts'

const ORGANISATIONS = '/api/operator/organisations'
const ZON = { name: 'Camping Zon', email: 'info@zon.example' }
const AN = { name: 'An', email: 'an@zon.example', permissions: ['webhook:read', 'event:publish'] }

type AuditEntry = { action: string; memberId: null; details: Record<string, unknown>; requestId: string }

describe('the operator API', () => {
  const suite = useApi()
  let organisation = ''
  let count = 0

  beforeEach(() => {
    organisation = `${ORGANISATIONS}/org_${process.pid}_${++count}`
  })

  const idOf = (path: string): string => path.slice(ORGANISATIONS.length + 1)
  const call = (method: string, path: string, body?: unknown) =>
    suite.api.call(method, path, asOperator('manager', body === undefined ? {} : { body }))
  const auditOf = async (path: string): Promise<AuditEntry[]> => {
    const organisationId = idOf(path)
    const { apiKey } = await createMember(suite.database.dataSource, { organisationId })
    const { json } = await suite.api.call('GET', `/api/orgs/${organisationId}/audit`, { apiKey })
    return (json as { data: AuditEntry[] }).data
  }

  describe('organisations', () => {
    it('are created, found, and the same when they are given again', async () => {
      const created = await call('PUT', organisation, ZON)
      expect(created.status).to.equal(201)
      expect(created.headers.get('location')).to.equal(organisation)
      const expected = {
        id: idOf(organisation),
        ...ZON,
        supportEmail: null,
        timeZone: 'Europe/Brussels',
        state: 'active',
        erasure: null,
      }
      expect(created.json).to.deep.equal(expected)
      const again = await call('PUT', organisation, ZON)
      expect([again.status, again.json]).to.deep.equal([200, expected])
      expect((await call('GET', organisation)).json).to.deep.equal(expected)
    })

    it('are brought up to date, and what is left out gets its default', async () => {
      await call('PUT', organisation, { ...ZON, supportEmail: 'help@zon.example', timeZone: 'Asia/Tokyo' })
      const { json } = await call('PUT', organisation, { ...ZON, name: 'Zon' })
      expect(json).to.include({ name: 'Zon', supportEmail: null, timeZone: 'Europe/Brussels' })
    })

    it('are audited as changes of the operator, only when something changed', async () => {
      await call('PUT', organisation, ZON)
      await call('PUT', organisation, ZON)
      await call('PUT', organisation, { ...ZON, name: 'Zon' })
      const [updated, created, ...others] = await auditOf(organisation)
      expect(others).to.deep.equal([])
      expect(created).to.include({ action: 'organisation.created', memberId: null })
      expect(created!.details).to.include({ actor: 'operator:manager', before: null })
      expect(updated).to.include({ action: 'organisation.updated' })
      expect(updated!.details).to.deep.include({
        before: { name: 'Camping Zon' },
        after: { name: 'Zon' },
      })
      expect(updated!.requestId).to.be.a('string')
    })

    it('are listed page by page, each once', async () => {
      for (const suffix of ['a', 'b', 'c']) await call('PUT', `${organisation}${suffix}`, ZON)
      const seen: string[] = []
      let query = '?limit=2'
      for (;;) {
        const { status, json } = await call('GET', `${ORGANISATIONS}${query}`)
        expect(status).to.equal(200)
        const { data, nextCursor } = json as { data: { id: string }[]; nextCursor: string | null }
        expect(data.length).to.be.at.most(2)
        seen.push(...data.map(({ id }) => id))
        if (nextCursor === null) break
        query = `?limit=2&cursor=${nextCursor}`
      }
      expect(new Set(seen).size).to.equal(seen.length)
      for (const suffix of ['a', 'b', 'c']) expect(seen).to.include(`${idOf(organisation)}${suffix}`)
    })

    it('that are created by several requests at the same time are created by one of them', async () => {
      const runner = await openTransaction(suite.database.dataSource)
      const id = idOf(organisation)
      const actor = { organisationId: id, memberId: null, apiKeyId: null, address: null, requestId: null }
      await saveOrganisation(runner.manager, actor, { id, ...ZON })
      const second = call('PUT', organisation, ZON)
      await untilWaitingForLock(suite.database.dataSource)
      await runner.commitTransaction()
      await runner.release()
      expect((await second).status).to.equal(200)
      expect(await auditOf(organisation)).to.have.length(1)
    })
  })

  describe('members', () => {
    beforeEach(() => call('PUT', organisation, ZON))

    it('are created, brought up to date, listed and deleted', async () => {
      const path = `${organisation}/members/mem_an`
      const created = await call('PUT', path, AN)
      expect(created.status).to.equal(201)
      expect(created.headers.get('location')).to.equal(path)
      const expected = { id: 'mem_an', ...AN, fullAccess: false, pushEnabled: true }
      expect(created.json).to.deep.equal(expected)
      const updated = await call('PUT', path, { ...AN, fullAccess: true })
      expect([updated.status, updated.json]).to.deep.equal([200, { ...expected, fullAccess: true }])
      expect((await call('GET', path)).json).to.deep.equal({ ...expected, fullAccess: true })
      expect((await call('GET', `${organisation}/members`)).json).to.deep.equal({
        data: [{ ...expected, fullAccess: true }],
        nextCursor: null,
      })
      expect((await call('DELETE', path)).status).to.equal(204)
      expect((await call('GET', path)).status).to.equal(404)
      expect((await call('DELETE', path)).status).to.equal(404)
      const actions = (await auditOf(organisation)).map(({ action }) => action)
      expect(actions).to.deep.equal([
        'member.deleted',
        'member.updated',
        'member.created',
        'organisation.created',
      ])
    })

    it('of no organisation are refused with 404, as it is, and as keys of no member are', async () => {
      for (const [method, path, body] of [
        ['GET', `${organisation}x`],
        ['GET', `${ORGANISATIONS}/%00`],
        ['DELETE', `${organisation}x`],
        ['PUT', `${organisation}x/members/mem_an`, AN],
        ['GET', `${organisation}x/members`],
        ['POST', `${organisation}/members/unknown/api-keys`, { name: 'ci' }],
        ['DELETE', `${organisation}/members/unknown/api-keys/ci`],
      ] as const)
        expect((await call(method, path, body)).status, `${method} ${path}`).to.equal(404)
    })
  })

  describe('API keys', () => {
    let keys = ''
    beforeEach(async () => {
      await call('PUT', organisation, ZON)
      await call('PUT', `${organisation}/members/mem_an`, AN)
      keys = `${organisation}/members/mem_an/api-keys`
    })

    it('are shown once, act as their member, and are never listed with their value', async () => {
      const created = await call('POST', keys, { name: 'ci', expiresAt: '2099-01-01T00:00:00Z' })
      expect(created.status).to.equal(201)
      expect(created.headers.get('cache-control')).to.equal('no-store')
      const { key, ...shown } = created.json as { key: string; id: string }
      expect(created.headers.get('location')).to.equal(`${keys}/${shown.id}`)
      expect(shown).to.include({ name: 'ci', memberId: 'mem_an', expiresAt: '2099-01-01T00:00:00.000Z' })
      const listed = await call('GET', keys)
      expect(listed.json).to.deep.equal({ data: [shown] })
      const used = await suite.api.call('GET', `/api/orgs/${idOf(organisation)}/webhooks`, { apiKey: key })
      expect(used.status).to.equal(200)
      const audit = JSON.stringify(await auditOf(organisation))
      expect(audit).to.include('api_key.created').and.not.include(key)
    })

    it('are revoked for good once the answer is there, and revoking twice is harmless', async () => {
      const { key, id } = (await call('POST', keys, { name: 'ci' })).json as { key: string; id: string }
      expect((await call('DELETE', `${keys}/${id}`)).status).to.equal(204)
      const used = await suite.api.call('GET', `/api/orgs/${idOf(organisation)}/webhooks`, { apiKey: key })
      expect(used.status).to.equal(401)
      expect((await call('DELETE', `${keys}/${id}`)).status).to.equal(204)
      const revocations = (await auditOf(organisation)).filter(({ action }) => action === 'api_key.revoked')
      expect(revocations).to.have.length(1)
      expect(revocations[0]!.details).to.deep.include({ actor: 'operator:manager', name: 'ci', id })
      // The name is free again.
      expect((await call('POST', keys, { name: 'ci' })).status).to.equal(201)
    })

    it('are revoked for good also where the answer to an earlier request was lost', async () => {
      const { key, id } = (await call('POST', keys, { name: 'ci' })).json as { key: string; id: string }
      const { dataSource } = suite.database
      const findCaller = createCallerLookup(dataSource)
      expect(await findCaller(key)).to.include({ memberId: 'mem_an' })
      await dataSource.query('UPDATE api_key SET revoked_at = now() WHERE id = $1', [id])
      expect((await call('DELETE', `${keys}/${id}`)).status).to.equal(204)
      expect(await findCaller(key)).to.equal(null)
    })

    it('of a name that is taken are refused with 409, and of another member are not found', async () => {
      const { id } = (await call('POST', keys, { name: 'ci' })).json as { id: string }
      const again = await call('POST', keys, { name: 'ci' })
      expect([again.status, (again.json as { code: string }).code]).to.deep.equal([409, 'api_key_name_taken'])
      await call('PUT', `${organisation}/members/mem_bo`, AN)
      const others = `${organisation}/members/mem_bo/api-keys`
      expect((await call('DELETE', `${others}/${id}`)).status).to.equal(404)
    })
  })

  describe('publishing', () => {
    const event = { event: 'customer:created', data: { id: 'cus_1' } }
    const publish = (organisationId: string, name: 'publisher' | 'all' | 'manager', headers = {}) =>
      suite.api.call('POST', `/api/orgs/${organisationId}/events`, asOperator(name, { body: event, headers }))

    it('into an organisation that does not exist is refused with 404', async () => {
      for (const id of [idOf(organisation), '%00', 'a b'])
        expect((await publish(id, 'publisher')).status, id).to.equal(404)
    })

    it('takes effect once for one Idempotency-Key, whichever operator key repeats it', async () => {
      await call('PUT', organisation, ZON)
      const headers = { 'idempotency-key': 'once' }
      const first = await publish(idOf(organisation), 'publisher', headers)
      const second = await publish(idOf(organisation), 'all', headers)
      expect(second.json).to.deep.equal(first.json)
    })
  })
})

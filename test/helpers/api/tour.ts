import type { CallOptions } from './api.ts'
import { asOperator } from './operator.ts'

/** Calls an operation, by the template of its path; returns the answer's JSON. */
type Visit = (
  method: string,
  template: string,
  options?: CallOptions & { id?: string; jobId?: string; orgId?: string; memberId?: string; query?: string },
) => Promise<{ id: string }>

/** Every success of the operator API, and one refusal of every kind. */
export async function visitOperatorApi(visit: Visit): Promise<void> {
  const organisations = '/api/operator/organisations'
  const organisation = `${organisations}/{orgId}`
  const members = `${organisation}/members`
  const keysOfMember = `${members}/{memberId}/api-keys`
  const person = { name: 'Zon', email: 'info@zon.example' }
  const byOperator = asOperator()
  const { id: keyId } = await visit('POST', keysOfMember, { ...byOperator, body: { name: 'another' } })
  await visit('POST', keysOfMember, { ...byOperator, body: { name: 'another' } })
  await visit('GET', keysOfMember, byOperator)
  await visit('DELETE', `${keysOfMember}/{id}`, { ...byOperator, id: keyId })
  await visit('GET', members, byOperator)
  for (const memberId of ['mem_new', 'mem_new'])
    await visit('PUT', `${members}/{memberId}`, { ...byOperator, memberId, body: person })
  await visit('PUT', `${members}/{memberId}`, { ...byOperator, memberId: 'a b', body: person })
  await visit('GET', `${members}/{memberId}`, { ...byOperator, memberId: 'mem_new' })
  for (const memberId of ['mem_new', 'unknown'])
    await visit('DELETE', `${members}/{memberId}/sessions`, { ...byOperator, memberId })
  await visit('DELETE', `${members}/{memberId}`, { ...byOperator, memberId: 'mem_new' })
  await visit('GET', '/api/operator/overview', byOperator)
  await visit('GET', '/api/operator/webhooks', { ...byOperator, query: '?state=degraded' })
  for (const method of ['POST', 'GET', 'DELETE']) await visit(method, '/api/operator/session', byOperator)
  await visit('GET', organisations, byOperator)
  await visit('GET', organisations, asOperator('portal'))
  await visit('GET', organisations)
  for (const orgId of ['org_new', 'org_new'])
    await visit('PUT', organisation, { ...byOperator, orgId, body: person })
  await visit('GET', organisation, byOperator)
  await visit('DELETE', organisation, { ...byOperator, orgId: 'org_new' })
  await visit('GET', organisation, { ...byOperator, orgId: 'org_new' })
  await visit('PUT', organisation, { ...byOperator, orgId: 'org_new', body: person })
  await visit('DELETE', organisation, { ...byOperator, orgId: 'unknown' })
}

/** Holds a webhook that is enabled, has its member refused, and releases it. */
export async function visitHold(visit: Visit, id: string): Promise<void> {
  const webhook = '/api/operator/organisations/{orgId}/webhooks/{id}'
  for (const reason of ['It floods us.', ''])
    await visit('POST', `${webhook}/disable`, { id, ...asOperator('all', { body: { reason } }) })
  await visit('PATCH', '/api/orgs/{orgId}/webhooks/{id}', { id, body: { enabled: true } })
  await visit('POST', `${webhook}/enable`, { id, ...asOperator() })
}

/** Visits replays to a webhook that is enabled. */
export async function visitReplays(visit: Visit, id: string): Promise<void> {
  const replays = '/api/orgs/{orgId}/webhooks/{id}/replays'
  const body = { since: '2026-01-01T00:00:00.000Z', include: 'all' }
  await visit('POST', replays, { id, body: { ...body, dryRun: true } })
  const { id: jobId } = await visit('POST', replays, { id, body })
  await visit('GET', replays, { id })
  for (const method of ['GET', 'DELETE']) await visit(method, `${replays}/{jobId}`, { id, jobId })
}

/** Visits the API keys of the calling member. */
export async function visitOwnApiKeys(visit: Visit): Promise<void> {
  const keys = '/api/orgs/{orgId}/api-keys'
  const { id } = await visit('POST', keys, { body: { name: 'another' } })
  await visit('POST', keys, { body: { name: 'another' } })
  await visit('GET', keys)
  await visit('DELETE', `${keys}/{id}`, { id })
}

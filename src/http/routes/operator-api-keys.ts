import type { Static } from 'typebox'
import { createMemberApiKey, revokeKey } from '../../accounts/api-keys.ts'
import { listApiKeys } from '../../db/queries/api-keys.ts'
import { notFound, type FieldError } from '../../problem-error.ts'
import type { ApiDependencies } from '../api.ts'
import { presentApiKey } from '../presenters/presenter.ts'
import { operatorActor, param, typedRoute, type Route } from '../route.ts'
import { ApiKeyListSchema, CreateApiKeySchema, CreatedApiKeySchema } from '../schemas/organisation.ts'
import { requireMember } from './operator-members.ts'

const COLLECTION = '/api/operator/organisations/:orgId/members/:memberId/api-keys'
const MAX_BODY_BYTES = 4 * 1024

/** The request and the answer that create a key, here and by its own member. */
export const KEY_BODY = { schema: CreateApiKeySchema, maxBytes: MAX_BODY_BYTES, rules: expiryErrors }
export const KEY_CREATED = {
  description: 'Created',
  schema: CreatedApiKeySchema,
  headers: { Location: 'Its path' },
}

const access: Route['access'] = { kind: 'operator', scope: 'manage' }

const listRoute: Route = {
  method: 'GET',
  path: COLLECTION,
  operationId: 'listApiKeys',
  summary: 'List the API keys of a member, the revoked ones too',
  description: 'Never their values.',
  access,
  responses: { 200: { description: 'Oldest first', schema: ApiKeyListSchema } },
  async handle(dependencies, request) {
    const { id } = await requireMember(dependencies, request)
    const keys = await listApiKeys(dependencies.dataSource, param(request, 'orgId'), id)
    return { status: 200, body: { data: keys.map(presentApiKey) } }
  },
}

const createRoute = typedRoute({
  method: 'POST',
  path: COLLECTION,
  operationId: 'createApiKey',
  summary: 'Create an API key of a member',
  description:
    'The key is in this answer only. A request without an answer may have created it: revoke the key of that name, and repeat.',
  access,
  body: KEY_BODY,
  responses: {
    201: {
      ...KEY_CREATED,
      links: { revokeApiKey: { id: '$response.body#/id' } },
    },
    409: { description: 'The member has a key of that name', problem: true },
  },
  async handle(dependencies, request) {
    const [organisationId, memberId] = [param(request, 'orgId'), param(request, 'memberId')]
    const actor = operatorActor(request)
    const wanted = { memberId, ...wantedKey(request.body) }
    const { key, row } = await createMemberApiKey(dependencies, actor, wanted)
    const location = `${COLLECTION.replace(':orgId', organisationId).replace(':memberId', memberId)}/${row.id}`
    return { status: 201, headers: { location }, body: { ...presentApiKey(row), key } }
  },
})

const revokeRoute: Route = {
  method: 'DELETE',
  path: `${COLLECTION}/:id`,
  operationId: 'revokeApiKey',
  summary: 'Revoke an API key of a member',
  description: 'It is valid nowhere any more once this is answered. Revoking twice is harmless.',
  access,
  responses: { 204: { description: 'Revoked' } },
  async handle(dependencies, request) {
    const { id: memberId } = await requireMember(dependencies, request)
    const choice = { id: param(request, 'id'), memberId }
    const revoked = await revokeKey(dependencies, operatorActor(request), choice)
    if (revoked === null) throw notFound('API key')
    return { status: 204 }
  },
}

export const operatorApiKeyRoutes: readonly Route[] = [listRoute, createRoute, revokeRoute]

/** Returns the key that a valid body asks for. */
export function wantedKey({ name, expiresAt = null }: Static<typeof CreateApiKeySchema>) {
  return { name, expiresAt: expiresAt === null ? null : new Date(expiresAt) }
}

/** Checks that the expiry of a new key lies in the future. */
function expiryErrors(
  { expiresAt }: Readonly<Record<string, unknown>>,
  { clock }: ApiDependencies,
): FieldError[] {
  if (typeof expiresAt !== 'string' || !(Date.parse(expiresAt) <= clock.nowMs())) return []
  return [{ pointer: '/expiresAt', code: 'too_small', detail: 'must lie in the future' }]
}

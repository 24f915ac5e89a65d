import type { Static } from 'typebox'
import { createMemberApiKey, createOwnApiKey, revokeKey } from '../../accounts/api-keys.ts'
import { listApiKeys, listKeysInForce } from '../../db/queries/api-keys.ts'
import { notFound, type FieldError } from '../../problem-error.ts'
import type { ApiDependencies } from '../api.ts'
import { presentApiKey } from '../presenters/presenter.ts'
import { operatorActor, param, typedRoute, type Route } from '../route.ts'
import {
  ApiKeyListSchema,
  CreateApiKeySchema,
  CreatedApiKeySchema,
  OwnApiKeyListSchema,
} from '../schemas/organisation.ts'
import { requireMember } from './operator-members.ts'

const OWN_KEYS = '/api/orgs/:orgId/api-keys'
const MEMBER_KEYS = '/api/operator/organisations/:orgId/members/:memberId/api-keys'
const MAX_BODY_BYTES = 4 * 1024

/** The request and the answer that create a key. */
const KEY_BODY = { schema: CreateApiKeySchema, maxBytes: MAX_BODY_BYTES, rules: expiryErrors }
const KEY_CREATED = {
  description: 'Created',
  schema: CreatedApiKeySchema,
  headers: { Location: 'Its path' },
}

/** Each member manages their own keys, and sees no others. */
const ofMember: Route['access'] = { kind: 'organisation', permission: null }
const ofOperator: Route['access'] = { kind: 'operator', scope: 'manage' }

const listOwnRoute: Route = {
  method: 'GET',
  path: OWN_KEYS,
  operationId: 'listOwnApiKeys',
  summary: "List the calling member's own API keys that are not revoked",
  description: 'Never their values.',
  access: ofMember,
  responses: { 200: { description: 'Oldest first', schema: OwnApiKeyListSchema } },
  async handle({ dataSource, memberApiKeys }, { actor }) {
    const keys = await listKeysInForce(dataSource, actor.organisationId, actor.memberId)
    return { status: 200, body: { data: keys.map(presentApiKey), isCreationEnabled: memberApiKeys } }
  },
}

const createOwnRoute = typedRoute({
  method: 'POST',
  path: OWN_KEYS,
  operationId: 'createOwnApiKey',
  summary: 'Create an API key of the calling member',
  description:
    'It acts as the member, with the same permissions. Where the caller has a key that expires, directly or in its session, the new one has to expire no later. The key is in this answer only. A request without an answer may have created it: revoke the key of that name, and repeat.',
  access: ofMember,
  body: KEY_BODY,
  responses: {
    201: {
      ...KEY_CREATED,
      links: { revokeOwnApiKey: { id: '$response.body#/id' } },
    },
    409: {
      description: 'Not possible in this state; see `code`',
      problem: ['api_key_name_taken', 'member_api_keys_off', 'too_many_api_keys'],
    },
  },
  async handle(dependencies, { actor, session, body }) {
    const { key, row } = await createOwnApiKey(dependencies, actor, session?.hash ?? null, wantedKey(body))
    const location = `${OWN_KEYS.replace(':orgId', actor.organisationId)}/${row.id}`
    return { status: 201, headers: { location }, body: { ...presentApiKey(row), key } }
  },
})

const revokeOwnRoute: Route = {
  method: 'DELETE',
  path: `${OWN_KEYS}/:id`,
  operationId: 'revokeOwnApiKey',
  summary: "Revoke one of the calling member's API keys",
  description:
    'It is valid nowhere any more once this is answered, and its sessions have ended. Revoking twice is harmless.',
  access: ofMember,
  responses: { 204: { description: 'Revoked' } },
  async handle(dependencies, request) {
    const { actor } = request
    const choice = { id: param(request, 'id'), memberId: actor.memberId }
    if ((await revokeKey(dependencies, actor, choice)) === null) throw notFound('API key')
    return { status: 204 }
  },
}

const listRoute: Route = {
  method: 'GET',
  path: MEMBER_KEYS,
  operationId: 'listApiKeys',
  summary: 'List the API keys of a member, the revoked ones too',
  description: 'Never their values.',
  access: ofOperator,
  responses: { 200: { description: 'Oldest first', schema: ApiKeyListSchema } },
  async handle(dependencies, request) {
    const { id } = await requireMember(dependencies, request)
    const keys = await listApiKeys(dependencies.dataSource, param(request, 'orgId'), id)
    return { status: 200, body: { data: keys.map(presentApiKey) } }
  },
}

const createRoute = typedRoute({
  method: 'POST',
  path: MEMBER_KEYS,
  operationId: 'createApiKey',
  summary: 'Create an API key of a member',
  description:
    'The key is in this answer only. A request without an answer may have created it: revoke the key of that name, and repeat.',
  access: ofOperator,
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
    const location = `${MEMBER_KEYS.replace(':orgId', organisationId).replace(':memberId', memberId)}/${row.id}`
    return { status: 201, headers: { location }, body: { ...presentApiKey(row), key } }
  },
})

const revokeRoute: Route = {
  method: 'DELETE',
  path: `${MEMBER_KEYS}/:id`,
  operationId: 'revokeApiKey',
  summary: 'Revoke an API key of a member',
  description: 'It is valid nowhere any more once this is answered. Revoking twice is harmless.',
  access: ofOperator,
  responses: { 204: { description: 'Revoked' } },
  async handle(dependencies, request) {
    const { id: memberId } = await requireMember(dependencies, request)
    const choice = { id: param(request, 'id'), memberId }
    const revoked = await revokeKey(dependencies, operatorActor(request), choice)
    if (revoked === null) throw notFound('API key')
    return { status: 204 }
  },
}

export const apiKeyRoutes: readonly Route[] = [listOwnRoute, createOwnRoute, revokeOwnRoute]
export const operatorApiKeyRoutes: readonly Route[] = [listRoute, createRoute, revokeRoute]

/** Returns the key that a valid body asks for. */
function wantedKey({ name, expiresAt = null }: Static<typeof CreateApiKeySchema>) {
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

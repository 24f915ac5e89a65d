import { createOwnApiKey, revokeKey } from '../../accounts/api-keys.ts'
import { listKeysInForce } from '../../db/queries/api-keys.ts'
import { notFound } from '../../problem-error.ts'
import { presentApiKey } from '../presenters/presenter.ts'
import { param, typedRoute, type Route } from '../route.ts'
import { OwnApiKeyListSchema } from '../schemas/organisation.ts'
import { KEY_BODY, KEY_CREATED, wantedKey } from './operator-api-keys.ts'

const COLLECTION = '/api/orgs/:orgId/api-keys'

/** Each member manages their own keys, and sees no others. */
const access: Route['access'] = { kind: 'organisation', permission: null }

const listRoute: Route = {
  method: 'GET',
  path: COLLECTION,
  operationId: 'listOwnApiKeys',
  summary: "List the calling member's own API keys that are not revoked",
  description: 'Never their values.',
  access,
  responses: { 200: { description: 'Oldest first', schema: OwnApiKeyListSchema } },
  async handle({ dataSource, memberApiKeys }, { actor }) {
    const keys = await listKeysInForce(dataSource, actor.organisationId, actor.memberId)
    return { status: 200, body: { data: keys.map(presentApiKey), isCreationEnabled: memberApiKeys } }
  },
}

const createRoute = typedRoute({
  method: 'POST',
  path: COLLECTION,
  operationId: 'createOwnApiKey',
  summary: 'Create an API key of the calling member',
  description:
    'It acts as the member, with the same permissions. Where the caller has a key that expires, directly or in its session, the new one has to expire no later. The key is in this answer only. A request without an answer may have created it: revoke the key of that name, and repeat.',
  access,
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
  async handle(dependencies, { actor, body }) {
    const { key, row } = await createOwnApiKey(dependencies, actor, wantedKey(body))
    const location = `${COLLECTION.replace(':orgId', actor.organisationId)}/${row.id}`
    return { status: 201, headers: { location }, body: { ...presentApiKey(row), key } }
  },
})

const revokeRoute: Route = {
  method: 'DELETE',
  path: `${COLLECTION}/:id`,
  operationId: 'revokeOwnApiKey',
  summary: "Revoke one of the calling member's API keys",
  description:
    'It is valid nowhere any more once this is answered, and its sessions have ended. Revoking twice is harmless.',
  access,
  responses: { 204: { description: 'Revoked' } },
  async handle(dependencies, request) {
    const { actor } = request
    const choice = { id: param(request, 'id'), memberId: actor.memberId }
    if ((await revokeKey(dependencies, actor, choice)) === null) throw notFound('API key')
    return { status: 204 }
  },
}

export const apiKeyRoutes: readonly Route[] = [listRoute, createRoute, revokeRoute]

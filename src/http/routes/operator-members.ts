import { putMember, removeMember } from '../../accounts/organisations.ts'
import { endSessionsOf } from '../../accounts/sessions.ts'
import { findMember, listMembers } from '../../db/queries/organisations.ts'
import { notFound } from '../../problem-error.ts'
import type { ApiDependencies } from '../api.ts'
import { listRoute } from '../list-route.ts'
import { presentMember } from '../presenters/presenter.ts'
import { operatorActor, param, typedRoute, type Route, type RouteRequest } from '../route.ts'
import { MemberSchema, PutMemberSchema } from '../schemas/organisation.ts'

const COLLECTION = '/api/operator/organisations/:orgId/members'
const ONE = `${COLLECTION}/:memberId`
const MAX_BODY_BYTES = 64 * 1024

const access: Route['access'] = { kind: 'operator', scope: 'manage' }

const membersRoute = listRoute({
  path: COLLECTION,
  operationId: 'listMembers',
  summary: 'List the members of an organisation, by id',
  access,
  title: 'MemberList',
  item: MemberSchema,
  what: 'Entries',
  cursorPrefix: 'm1',
  exampleId: 'mem_an',
  async open({ dataSource, requireOrganisation }, request) {
    const organisationId = param(request, 'orgId')
    await requireOrganisation(organisationId)
    return (range) => listMembers(dataSource, organisationId, range)
  },
  present: presentMember,
})

const getRoute: Route = {
  method: 'GET',
  path: ONE,
  operationId: 'getMember',
  summary: 'Get a member',
  access,
  responses: { 200: { description: 'The member', schema: MemberSchema } },
  async handle(dependencies, request) {
    return { status: 200, body: presentMember(await requireMember(dependencies, request)) }
  },
}

const putRoute = typedRoute({
  method: 'PUT',
  path: ONE,
  operationId: 'putMember',
  summary: 'Create a member, or bring it up to date',
  description:
    'The body is the whole member. Repeating it changes nothing. A right that is taken ends within a second.',
  access,
  body: { schema: PutMemberSchema, maxBytes: MAX_BODY_BYTES },
  responses: {
    200: { description: 'It existed, and is as given now', schema: MemberSchema },
    201: { description: 'Created', schema: MemberSchema, headers: { Location: 'Its path' } },
  },
  async handle(dependencies, request) {
    const [organisationId, id] = [param(request, 'orgId'), param(request, 'memberId')]
    const actor = operatorActor(request)
    const { isNew, member } = await putMember(dependencies, actor, { id, ...request.body })
    const body = presentMember(member)
    if (!isNew) return { status: 200, body }
    return {
      status: 201,
      headers: { location: `${COLLECTION.replace(':orgId', organisationId)}/${id}` },
      body,
    }
  },
})

const deleteRoute: Route = {
  method: 'DELETE',
  path: ONE,
  operationId: 'deleteMember',
  summary: 'Delete a member with its API keys, sessions and push subscriptions',
  description:
    'Its keys are valid nowhere any more once this is answered. Webhooks belong to the organisation and stay.',
  access,
  responses: { 204: { description: 'Deleted' } },
  async handle(dependencies, request) {
    const actor = operatorActor(request)
    await removeMember(dependencies, actor, param(request, 'memberId'))
    return { status: 204 }
  },
}

const endSessionsRoute: Route = {
  method: 'DELETE',
  path: `${ONE}/sessions`,
  operationId: 'deleteSessions',
  summary: 'End all sessions of a member, in every browser',
  description:
    'Of portal links and of API keys, at once. The portal links of the member that nobody has opened, and the push subscriptions of its browsers, end too. Its API keys stay valid: with one, or with a new portal link, the member signs in again.',
  access,
  responses: { 204: { description: 'Ended; also where there was none' } },
  async handle(dependencies, request) {
    const actor = operatorActor(request)
    await endSessionsOf(dependencies, actor, param(request, 'memberId'))
    return { status: 204 }
  },
}

export const operatorMemberRoutes: readonly Route[] = [
  membersRoute,
  getRoute,
  putRoute,
  deleteRoute,
  endSessionsRoute,
]

/** Returns the member of the path. Throws 404 where there is none. */
export async function requireMember(
  { dataSource, requireOrganisation }: ApiDependencies,
  request: Pick<RouteRequest, 'params'>,
) {
  const organisationId = param(request, 'orgId')
  await requireOrganisation(organisationId)
  const member = await findMember(dataSource, organisationId, param(request, 'memberId'))
  if (member === null) throw notFound('member')
  return member
}

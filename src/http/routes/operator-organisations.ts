import { putOrganisation } from '../../accounts/organisations.ts'
import { requestErasure } from '../../accounts/erase-organisation.ts'
import { findOrganisation, listOrganisations, type OrganisationRow } from '../../db/queries/organisations.ts'
import { notFound } from '../../problem-error.ts'
import { listRoute } from '../list-route.ts'
import { presenter } from '../presenters/presenter.ts'
import { operatorActor, operatorOf, param, typedRoute, type Route } from '../route.ts'
import { OrganisationSchema, PutOrganisationSchema } from '../schemas/organisation.ts'

const COLLECTION = '/api/operator/organisations'
const ONE = `${COLLECTION}/:orgId`
const MAX_BODY_BYTES = 16 * 1024

const presentShown = presenter(OrganisationSchema)

const access: Route['access'] = { kind: 'operator', scope: 'manage' }

const organisationsRoute = listRoute({
  path: COLLECTION,
  operationId: 'listOrganisations',
  summary: 'List all organisations, by id',
  access,
  title: 'OrganisationList',
  item: OrganisationSchema,
  what: 'Entries',
  cursorPrefix: 'o1',
  exampleId: 'org_camping',
  open:
    ({ dataSource }) =>
    (range) =>
      listOrganisations(dataSource, range),
  present: presentOrganisation,
})

const getRoute: Route = {
  method: 'GET',
  path: ONE,
  operationId: 'getOrganisation',
  summary: 'Get an organisation, or the progress of its erasure',
  access,
  responses: { 200: { description: 'The organisation', schema: OrganisationSchema } },
  async handle({ dataSource }, request) {
    const found = await findOrganisation(dataSource, param(request, 'orgId'))
    if (found === null) throw notFound('organisation')
    return { status: 200, body: presentOrganisation(found) }
  },
}

const putRoute = typedRoute({
  method: 'PUT',
  path: ONE,
  operationId: 'putOrganisation',
  summary: 'Create an organisation, or bring it up to date',
  description: 'The body is the whole organisation. Repeating it changes nothing.',
  access,
  body: { schema: PutOrganisationSchema, maxBytes: MAX_BODY_BYTES },
  responses: {
    200: { description: 'It existed, and is as given now', schema: OrganisationSchema },
    201: { description: 'Created', schema: OrganisationSchema, headers: { Location: 'Its path' } },
    409: { description: 'An organisation of this id is being erased', problem: true },
  },
  async handle(dependencies, request) {
    const id = param(request, 'orgId')
    const actor = operatorActor(request)
    const { isNew, organisation } = await putOrganisation(dependencies, actor, { id, ...request.body })
    const body = presentOrganisation({ ...organisation, erasure: null })
    if (!isNew) return { status: 200, body }
    return { status: 201, headers: { location: `${COLLECTION}/${id}` }, body }
  },
})

const deleteRoute: Route = {
  method: 'DELETE',
  path: ONE,
  operationId: 'eraseOrganisation',
  summary: 'Erase an organisation with everything that belongs to it',
  description:
    'From the answer on nothing is delivered or accepted for it. Events, payloads, deliveries, attempts, webhooks, incidents, members, keys, sessions and audit entries are erased in the background; `GET` shows the progress, and 404 at the end. Nothing is kept.',
  access,
  responses: {
    202: {
      description: 'The erasure has begun, now or before',
      schema: OrganisationSchema,
      headers: { Location: 'Where its progress is' },
    },
  },
  async handle(dependencies, request) {
    const id = param(request, 'orgId')
    const organisation = await requestErasure(dependencies, operatorOf(request), id)
    const location = `${COLLECTION}/${id}`
    return { status: 202, headers: { location }, body: presentOrganisation(organisation) }
  },
}

export const operatorOrganisationRoutes: readonly Route[] = [
  organisationsRoute,
  getRoute,
  putRoute,
  deleteRoute,
]

function presentOrganisation({ erasure, ...organisation }: OrganisationRow) {
  return presentShown({
    ...organisation,
    state: erasure === null ? 'active' : 'erasing',
    erasure: erasure && { ...erasure, retained: [] },
  })
}

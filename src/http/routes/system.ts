import { builtInCatalogue } from '../../catalogue/built-in-catalogue.ts'
import { bytesOfCatalogue } from '../answer.ts'
import type { ApiDependencies } from '../api.ts'
import { openApiDocument } from '../openapi.ts'
import { readReadiness, ReadinessSchema } from '../readiness.ts'
import type { Route } from '../route.ts'
import { Type } from 'typebox'
import { openObject } from '../schemas/common.ts'

const HealthSchema = Type.Object({ status: Type.Literal('ok') }, { title: 'Health' })

const OpenApiSchema = openObject({
  title: 'OpenApiDocument',
  examples: [{ openapi: '3.1.0', info: { title: 'Posthorn' } }],
})

const healthRoute: Route = {
  method: 'GET',
  path: '/healthz',
  operationId: 'getHealth',
  summary: 'The process answers',
  access: { kind: 'open' },
  responses: { 200: { description: 'Alive', schema: HealthSchema } },
  handle: () => Promise.resolve({ status: 200, body: { status: 'ok' } }),
}

const readyRoute: Route = {
  method: 'GET',
  path: '/readyz',
  operationId: 'getReadiness',
  summary: 'The database and Temporal can be reached',
  description:
    'Ready while the database answers and takes events: they are accepted without Temporal and delivered when it is back.',
  access: { kind: 'open' },
  responses: {
    200: { description: 'Ready', schema: ReadinessSchema },
    503: {
      description: 'The database is down, or the process is about to end',
      schema: ReadinessSchema,
      example: { database: 'down', engine: 'up' },
    },
  },
  async handle(dependencies) {
    const { isReady, body } = await readReadiness(dependencies, 'api')
    return { status: isReady ? 200 : 503, body }
  },
}

/** Creates the routes of health, readiness, and the document that describes these and the `other` routes. */
export function createSystemRoutes(other: readonly Route[]): readonly Route[] {
  const documentBytes = bytesOfCatalogue((catalogue) =>
    openApiDocument([...other, ...systemRoutes], catalogue),
  )
  const bytesWithoutKeys = bytesOfCatalogue(() =>
    openApiDocument([...other, ...systemRoutes], { eventKeys: [] }),
  )
  const openApiRoute: Route = {
    method: 'GET',
    path: '/openapi.json',
    operationId: 'getOpenApi',
    summary: 'This document',
    description:
      'Where the service has an event catalogue of its own, the keys and payloads of its events are only in the document for callers with a valid key or session.',
    access: { kind: 'open', recognises: hasOwnCatalogue },
    responses: { 200: { description: 'OpenAPI 3.1', schema: OpenApiSchema } },
    handle(dependencies, { actor }) {
      const { catalogue } = dependencies
      const isStranger = hasOwnCatalogue(dependencies) && actor.organisationId === ''
      const bytes = isStranger ? bytesWithoutKeys(catalogue) : documentBytes(catalogue)
      return Promise.resolve({ status: 200, json: bytes })
    },
  }
  const systemRoutes = [healthRoute, readyRoute, openApiRoute]
  return systemRoutes
}

/** What such a catalogue tells of the platform is for its customers, as in `/api/event-keys`; the built-in one is public. */
function hasOwnCatalogue({ catalogue }: Pick<ApiDependencies, 'catalogue'>): boolean {
  return catalogue !== builtInCatalogue
}

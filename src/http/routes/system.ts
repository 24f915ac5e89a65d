import { setTimeout as delay } from 'node:timers/promises'
import { Type } from 'typebox'
import type { DataSource } from 'typeorm'
import { openApiDocument } from '../openapi.ts'
import type { Route } from '../route.ts'

const ReadySchema = Type.Object({
  database: Type.Enum(['up', 'down']),
  engine: Type.Enum(['up', 'down']),
  sweep: Type.Optional(
    Type.Literal('stalled', {
      description:
        'Only there when the recovery of deliveries has not come to the end of a pass for 30 seconds',
    }),
  ),
  process: Type.Optional(
    Type.Literal('stopping', { description: 'Only there when this process is about to end' }),
  ),
})

const healthRoute: Route = {
  method: 'GET',
  path: '/healthz',
  operationId: 'getHealth',
  summary: 'The process answers',
  access: { kind: 'open' },
  responses: { 200: { description: 'Alive', schema: Type.Object({ status: Type.Literal('ok') }) } },
  handle: () => Promise.resolve({ status: 200, body: { status: 'ok' } }),
}

const readyRoute: Route = {
  method: 'GET',
  path: '/readyz',
  operationId: 'getReadiness',
  summary: 'The database and the engine can be reached',
  description:
    'Ready while the database answers and takes events: they are accepted without the engine and delivered when it is back.',
  access: { kind: 'open' },
  responses: {
    200: { description: 'Ready', schema: ReadySchema },
    503: { description: 'The database is down, or the process is about to end', schema: ReadySchema },
  },
  async handle({ dataSource, engine, publish, sweep, stopping }) {
    const [answers, engineUp] = await Promise.all([isDatabaseUp(dataSource), engine.isUp()])
    const database = answers && !publish.isFailing()
    const body = {
      database: database ? 'up' : 'down',
      engine: engineUp ? 'up' : 'down',
      ...(sweep?.isStalled() === true ? { sweep: 'stalled' } : {}),
      ...(stopping.aborted ? { process: 'stopping' } : {}),
    }
    return { status: database && !stopping.aborted ? 200 : 503, body }
  },
}

/** Health, readiness, and the document that describes these and all the `other` routes. */
export function createSystemRoutes(other: readonly Route[]): readonly Route[] {
  let bytes: Buffer | null = null
  // Made once: many answers at a time are the same bytes.
  const documentBytes = (): Buffer =>
    (bytes ??= Buffer.from(JSON.stringify(openApiDocument([...other, ...systemRoutes]))))
  const openApiRoute: Route = {
    method: 'GET',
    path: '/openapi.json',
    operationId: 'getOpenApi',
    summary: 'This document',
    access: { kind: 'open' },
    responses: { 200: { description: 'OpenAPI 3.1', schema: Type.Object({}) } },
    handle: () => Promise.resolve({ status: 200, json: documentBytes() }),
  }
  const systemRoutes = [healthRoute, readyRoute, openApiRoute]
  return systemRoutes
}

/** A probe that hangs says no more than one that fails. */
const PROBE_TIMEOUT_MS = 2_000

function isDatabaseUp(dataSource: DataSource): Promise<boolean> {
  const answered = dataSource.query('SELECT 1').then(
    () => true,
    () => false,
  )
  return Promise.race([answered, delay(PROBE_TIMEOUT_MS, false, { ref: false })])
}

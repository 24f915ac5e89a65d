import { expect } from 'chai'
import pLimit from 'p-limit'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { openApiDocument } from '../../../src/http/openapi.ts'
import type { Route } from '../../../src/http/route.ts'
import { routes } from '../../../src/http/routes/index.ts'
import { type ApiResponse, useApi } from '../../helpers/api/api.ts'
import { secretOf } from '../../helpers/api/operator.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'

type Schema = {
  type?: string | string[]
  enum?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean
  minLength?: number
  maxLength?: number
  maximum?: number
  minimum?: number
  minItems?: number
}
type Fields = Record<string, unknown>
type Document = {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { example: Fields }> } }>>
}

/** One body that a schema refuses, and the pointer of the field that the answer names. */
type Refused = { what: string; body: unknown; pointer: string }

const { paths } = openApiDocument(routes, builtInCatalogue) as Document

const WRONG_TYPES = [7, 'text', true, null, [], {}]

function typesOf({ type, enum: allowed }: Schema): string[] {
  return allowed === undefined ? [type ?? []].flat() : ['enum']
}

function isOfType(value: unknown, types: readonly string[]): boolean {
  if (value === null) return types.includes('null')
  if (Array.isArray(value)) return types.includes('array')
  const type = typeof value
  return types.includes(type) || (type === 'number' && types.includes('integer'))
}

/** Values that the schema refuses: of each other type, and beyond each of its limits. */
function* wrongValues(schema: Schema): Generator<[what: string, value: unknown]> {
  const types = typesOf(schema)
  if (types.length > 0)
    for (const value of WRONG_TYPES) if (!isOfType(value, types)) yield [JSON.stringify(value), value]
  const { minLength = 0, maxLength, maximum, minimum, minItems = 0 } = schema
  if (minLength > 0) yield ['too short a text', 'x'.repeat(minLength - 1)]
  if (maxLength !== undefined) yield [`${maxLength + 1} characters`, 'x'.repeat(maxLength + 1)]
  if (maximum !== undefined) yield [`${maximum + 1}`, maximum + 1]
  if (minimum !== undefined) yield [`${minimum - 1}`, minimum - 1]
  if (types.includes('integer')) yield ['1.5', 1.5]
  if (minItems > 0) yield ['an empty list', []]
}

/** Bodies with one fault each. */
function* faults(schema: Schema, good: Fields, at = ''): Generator<Refused> {
  const { properties = {}, required = [] } = schema
  for (const value of WRONG_TYPES)
    if (!isOfType(value, typesOf(schema))) yield { what: JSON.stringify(value), body: value, pointer: at }
  for (const name of required) {
    const body = Object.fromEntries(Object.entries(good).filter(([other]) => other !== name))
    yield { what: `without ${name}`, body, pointer: `${at}/${name}` }
  }
  if (schema.additionalProperties === false)
    yield {
      what: 'an unknown field',
      body: { ...good, 'a/b~c\u0000\ud800': 1 },
      pointer: `${at}/a~1b~0c\u0000\ud800`,
    }
  for (const [name, of] of Object.entries(properties)) {
    const pointer = `${at}/${name}`
    if (of.properties !== undefined)
      for (const { what, body, pointer: below } of faults(of, (good[name] ?? {}) as Fields, pointer))
        yield { what: `${name}: ${what}`, body: { ...good, [name]: body }, pointer: below }
    else
      for (const [what, value] of wrongValues(of))
        yield { what: `${name}: ${what}`, body: { ...good, [name]: value }, pointer }
  }
}

describe('a body with one fault', () => {
  const suite = useApi()
  let member: TestMember
  let ids: Record<string, string>
  let sent = 0
  after(() => process.stdout.write(`      ${sent} bodies\n`))
  before(async () => {
    const { dataSource } = suite.database
    member = await createMember(dataSource)
    const { organisationId, memberId } = member
    const webhook = await createWebhookRow(dataSource, { organisationId, url: 'https://hooks.customer.com/' })
    ids = { orgId: organisationId, id: webhook.id, memberId }
  })

  function send({ method, path, access }: Route, raw: string): Promise<ApiResponse> {
    const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name] ?? ids['id']!)
    return access.kind === 'operator'
      ? suite.api.call(method, filled, { raw, headers: { 'x-operator-key': secretOf('all') } })
      : suite.api.call(method, filled, { raw, apiKey: member.apiKey })
  }

  for (const route of routes) {
    const { body, method, path, access } = route
    if (body === undefined || access.kind === 'open') continue
    it(`of ${route.operationId} is refused with its field, whichever keyword of the schema it breaks`, async () => {
      const at = path.replaceAll(/:(\w+)/g, '{$1}')
      const { example } = paths[at]![method.toLowerCase()]!.requestBody!.content['application/json']!
      const limit = pLimit(8)
      const check = async ({ what, body: bad, pointer }: Refused): Promise<void> => {
        sent++
        const { status, json, text } = await send(route, JSON.stringify(bad))
        expect(status, `${what}: ${text}`).to.equal(422)
        const { errors } = json as { errors: { pointer: string }[] }
        expect(
          errors.map((error) => error.pointer),
          what,
        ).to.include(pointer)
      }
      await limit.map([...faults(body.schema as Schema, example)], check)
    })
  }
})

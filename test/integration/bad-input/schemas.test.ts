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
  maxItems?: number
  items?: Schema
  pattern?: string
  format?: string
  documented?: { pattern?: string }
  anyOf?: Schema[]
  examples?: string[]
}
type Sent = { raw?: string; query?: string }
type Fields = Record<string, unknown>
type Document = {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { example: Fields }> } }>>
}

/** One body that a schema refuses, and the pointer of the field that the answer names. */
type Refused = { what: string; body: unknown; pointer: string }

const { paths } = openApiDocument(routes, builtInCatalogue) as Document

const WRONG_TYPES = [7, 'text', true, null, [], {}]

/** Text that patterns refuse: control characters, white space, half a character, what reorders others. */
const ODD_TEXTS = ['a\nb', 'a\u0000', 'a\u0007b', 'a b', 'a\ud800', 'gepj.\u202eexe', '\u2067a\u2069']

/** Neither times nor addresses nor time zones. */
const OF_NO_FORMAT = [
  ...[' ', 'now', '1700000000000', '2026-03-01', '2026-03-01T10:00:00', '2026-02-30T10:00:00Z'],
  ...['2016-12-31T23:59:60Z', '2026-03-01T25:00:00Z', '2026-03-01T10:00:00.000Z\u0000'],
  ...['a@b.example, c@d.example', 'a@b.example\r\nBcc: c@d.example', 'Europe/Nowhere'],
]

/** What `Number` would read, and more digits than a number has. */
const OF_NO_NUMBER = ['', ' 1', '1e1', '0x10', '9'.repeat(400)]

function typesOf({ type, enum: allowed }: Schema): string[] {
  return allowed === undefined ? [type ?? []].flat() : ['enum']
}

function isOfType(value: unknown, types: readonly string[]): boolean {
  if (value === null) return types.includes('null')
  if (Array.isArray(value)) return types.includes('array')
  const type = typeof value
  return types.includes(type) || (type === 'number' && types.includes('integer'))
}

/** Values that the schema refuses: of each other type, of another form, and beyond each of its limits. */
function* wrongValues(schema: Schema): Generator<[what: string, value: unknown]> {
  const types = typesOf(schema)
  if (types.length > 0)
    for (const value of WRONG_TYPES) if (!isOfType(value, types)) yield [JSON.stringify(value), value]
  const { minLength = 0, maxLength, maximum, minimum, minItems = 0, maxItems, pattern, format } = schema
  if (minLength > 0) yield ['too short a text', 'x'.repeat(minLength - 1)]
  if (maxLength !== undefined) yield [`${maxLength + 1} characters`, 'x'.repeat(maxLength + 1)]
  if (maximum !== undefined) yield [`${maximum + 1}`, maximum + 1]
  if (minimum !== undefined) yield [`${minimum - 1}`, minimum - 1]
  if (types.includes('integer')) yield ['1.5', 1.5]
  if (minItems > 0) yield ['an empty list', []]
  if (maxItems !== undefined) yield [`${maxItems + 1} items`, Array(maxItems + 1).fill('a:b')]
  if (pattern !== undefined)
    for (const odd of ODD_TEXTS) if (!new RegExp(pattern, 'u').test(odd)) yield [JSON.stringify(odd), odd]
  if (format !== undefined) for (const none of OF_NO_FORMAT) yield [JSON.stringify(none), none]
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
    for (const [what, value] of of.items === undefined ? [] : wrongValues(of.items))
      yield { what: `${name}: ${what}`, body: { ...good, [name]: [value] }, pointer: `${pointer}/0` }
  }
}

/** Queries with one fault each. A parameter is a text: only a number can be of another type. */
function* queryFaults({ properties = {} }: Schema): Generator<[query: string, pointer: string]> {
  for (const odd of ['__proto__', 'constructor', 'limit[]']) yield [`${encodeURIComponent(odd)}=1`, `/${odd}`]
  yield ['a/b~c=1', '/a~1b~0c']
  for (const [name, of] of Object.entries(properties)) {
    const isNumber = typesOf(of).includes('integer')
    yield [`${name}=1&${name}=1`, `/${name}`]
    if (isNumber) for (const text of OF_NO_NUMBER) yield [`${name}=${encodeURIComponent(text)}`, `/${name}`]
    for (const [, value] of wrongValues(of))
      // Half a character is in no URL.
      if ((typeof value === 'string' && value !== 'a\ud800') || (typeof value === 'number' && isNumber))
        yield [new URLSearchParams({ [name]: String(value) }).toString(), `/${name}`]
  }
}

describe('a request with one fault', () => {
  const suite = useApi()
  let member: TestMember
  let ids: Record<string, string>
  let sent = 0
  after(() => process.stdout.write(`      ${sent} requests\n`))
  before(async () => {
    const { dataSource } = suite.database
    member = await createMember(dataSource)
    const { organisationId, memberId } = member
    const webhook = await createWebhookRow(dataSource, { organisationId, url: 'https://hooks.customer.com/' })
    ids = { orgId: organisationId, id: webhook.id, memberId }
  })

  function send({ method, path, access }: Route, { query = '', ...options }: Sent): Promise<ApiResponse> {
    sent++
    const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name] ?? ids['id']!)
    return access.kind === 'operator'
      ? suite.api.call(method, filled + query, { ...options, headers: { 'x-operator-key': secretOf('all') } })
      : suite.api.call(method, filled + query, { ...options, apiKey: member.apiKey })
  }
  async function expectNamed(route: Route, request: Sent, what: string, pointer: string): Promise<void> {
    const { status, json, text } = await send(route, request)
    expect(status, `${what}: ${text}`).to.equal(422)
    const { errors } = json as { errors: { pointer: string }[] }
    expect(
      errors.map((error) => error.pointer),
      what,
    ).to.include(pointer)
  }

  for (const route of routes) {
    const { body, method, path, access, operationId } = route
    if (body === undefined || access.kind === 'open') continue
    it(`in the body of ${operationId} is refused with its field, whichever keyword of the schema it breaks`, async () => {
      const at = path.replaceAll(/:(\w+)/g, '{$1}')
      const { example } = paths[at]![method.toLowerCase()]!.requestBody!.content['application/json']!
      await pLimit(8).map([...faults(body.schema as Schema, example)], ({ what, body: bad, pointer }) =>
        expectNamed(route, { raw: JSON.stringify(bad) }, what, pointer),
      )
    })
  }

  for (const route of routes) {
    if (route.access.kind === 'open') continue
    const query = (route.query ?? {}) as Schema
    it(`in the query of ${route.operationId} is refused with its parameter`, async () => {
      await pLimit(8).map([...queryFaults(query)], ([text, pointer]) =>
        expectNamed(route, { query: `?${text}` }, text, pointer),
      )
    })
  }

  for (const route of routes) {
    const pattern = (route.query as Schema | undefined)?.properties?.['cursor']?.documented?.pattern
    if (pattern === undefined) continue
    it(`in the cursor of ${route.operationId} gets 400: that of another list is none of this one`, async () => {
      const ofLists = routes.flatMap(shownCursors)
      const own = ofLists.find((cursor) => new RegExp(pattern).test(cursor))!
      expect((await send(route, { query: `?${ofState(route)}cursor=${own}` })).status).to.equal(200)
      const bad = [
        ...ofLists.filter((one) => one !== own),
        '',
        'x',
        own.slice(0, 2),
        `${own}=`,
        `x${own.slice(1)}`,
      ]
      for (const cursor of [...bad, `${own}\n`].map(encodeURIComponent)) {
        const { status, json } = await send(route, { query: `?${ofState(route)}cursor=${cursor}` })
        expect([status, json], cursor).to.have.nested.property('[1].code', 'invalid_cursor')
      }
    })
  }
})

/** The one parameter without which a list is refused. */
function ofState({ query }: Route): string {
  return query?.required.includes('state') === true ? 'state=failing&' : ''
}

/** The cursor in the example of a list. */
function shownCursors({ responses }: Route): string[] {
  const { nextCursor } = (responses[200]?.schema as Schema | undefined)?.properties ?? {}
  return nextCursor?.anyOf?.[0]?.examples ?? []
}

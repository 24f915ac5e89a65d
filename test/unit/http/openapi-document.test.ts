import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { PROBLEMS } from '../../../src/domain/problems.ts'
import { openApiDocument } from '../../../src/http/openapi.ts'
import { routes } from '../../../src/http/routes/index.ts'

type Content = Record<
  string,
  { schema: object; example?: unknown; examples?: Record<string, { value: unknown }> }
>
type Parameter = { $ref?: string; name: string; in: string; schema: object; example?: unknown }
type Response = { $ref?: string; content?: Content; links?: Record<string, Link> }
type Link = { operationId: string; parameters: Record<string, string> }
type Operation = {
  operationId: string
  description?: string
  tags: string[]
  parameters?: Parameter[]
  requestBody?: { content: Content }
  responses: Record<string, Response>
}
type Document = {
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: Operation }>
  components: {
    schemas: Record<string, Record<string, unknown>>
    responses: Record<string, Response>
    parameters: Record<string, Parameter>
  }
}

const parse = (
  given: typeof routes,
  eventKeys: Parameters<typeof openApiDocument>[1]['eventKeys'],
): Document => JSON.parse(JSON.stringify(openApiDocument(given, { eventKeys }))) as Document

describe('the OpenAPI document', () => {
  const document = parse(routes, builtInCatalogue.eventKeys)
  const { schemas } = document.components
  const operations = Object.values(document.paths).flatMap((ofPath) => Object.values(ofPath))
  const received = Object.entries(document.webhooks).map(([key, { post }]) => ({ key, post }))
  const all = [...operations, ...received.map(({ post }) => post)]

  const ajv = new Ajv2020({ strict: false, allErrors: true, discriminator: false })
  ajvFormats.default(ajv)
  for (const format of ['mail-address', 'time-zone', 'p256-public-key']) ajv.addFormat(format, true)
  ajv.addSchema({ $id: 'openapi.json', ...document })

  /** Checks a value by a schema of the document, whose references count from its root. */
  function expectFits(schema: object, value: unknown, at: string): void {
    const text = JSON.stringify(schema).replaceAll('"#/components', '"openapi.json#/components')
    const validate = ajv.compile(JSON.parse(text) as object)
    expect(validate(value), `${at}: ${JSON.stringify(validate.errors)}`).to.equal(true)
  }

  const responsesOf = ({ responses }: Operation): [status: string, Response][] =>
    Object.entries(responses).map(([status, response]) => [
      status,
      response.$ref === undefined
        ? response
        : document.components.responses[response.$ref.replace('#/components/responses/', '')]!,
    ])

  it('names a group for every operation, and lists the groups', () => {
    const listed = document.tags.map(({ name }) => name)
    for (const { operationId, tags } of all) {
      expect(tags, operationId).to.have.length(1)
      expect(listed, operationId).to.include(tags[0])
    }
    expect(listed).to.have.members([...new Set(all.flatMap(({ tags }) => tags))])
  })

  it('names every object: none is described in place, and none twice', () => {
    const inline: string[] = []
    const visit = (value: unknown, at: string): void => {
      if (typeof value !== 'object' || value === null) return
      const { properties = {} } = value as { properties?: unknown }
      const isNamed = /^\/components\/schemas\/\w+$/.test(at)
      const isPayload = /^\/components\/schemas\/\w+Data\//.test(at)
      const hasFields = Object.keys(properties as object).length > 0
      if (hasFields && !isNamed && !isPayload && !at.endsWith('/properties')) inline.push(at)
      for (const [name, below] of Object.entries(value)) {
        if (/^(examples?|default|enum|const)$/.test(name)) continue
        visit(below, `${at}/${name}`)
      }
    }
    visit(document, '')
    expect(inline).to.deep.equal([])
  })

  it('leaves no object without fields, which generators type as empty', () => {
    for (const [name, schema] of Object.entries(schemas)) {
      const text = JSON.stringify(schema)
      expect(text, name).to.not.include('"type":"object","properties":{}}')
      if (schema['type'] !== 'object') continue
      const fields = Object.keys(schema['properties'] ?? {})
      expect(fields.length > 0 || schema['additionalProperties'] !== undefined, name).to.equal(true)
    }
  })

  it('shows an example of every request, every success and every refusal, which fits its schema', () => {
    for (const operation of all) {
      for (const parameter of operation.parameters ?? [])
        if (parameter.example !== undefined)
          expectFits(parameter.schema, parameter.example, `${operation.operationId} ${parameter.name}`)
      const contents = responsesOf(operation).map(([status, { content }]) => [status, content] as const)
      for (const [at, content] of [['body', operation.requestBody?.content] as const, ...contents]) {
        for (const [type, { schema, example, examples = {} }] of Object.entries(content ?? {})) {
          if (type === 'text/event-stream') continue
          const values = [
            ...(example === undefined ? [] : [example]),
            ...Object.values(examples).map(({ value }) => value),
          ]
          expect(values, `${operation.operationId} ${at}`).not.to.be.empty
          for (const value of values) expectFits(schema, value, `${operation.operationId} ${at}`)
        }
      }
    }
  })

  it('states the statuses that any route, any key and any body can have', () => {
    for (const { path, method, operationId, access, body, countsAddress, sameOrigin } of routes) {
      const { responses } = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
      const statuses = ['400', '405', '408', '431', '500', '503']
      if (sameOrigin === true) statuses.push('403', '421')
      if (access.kind !== 'open' || countsAddress !== false) statuses.push('429')
      if (access.kind !== 'open') statuses.push('401')
      if (body !== undefined) statuses.push('413', '415', '422')
      expect(Object.keys(responses), operationId).to.include.members(statuses)
    }
  })

  it('shows every problem code', () => {
    const shown = operations.flatMap((operation) =>
      responsesOf(operation).flatMap(([, { content }]) =>
        Object.keys(content?.['application/problem+json']?.examples ?? {}),
      ),
    )
    expect([...new Set(shown)]).to.have.members(Object.keys(PROBLEMS))
  })

  it('shows each problem code that the description of its operation names', () => {
    for (const operation of operations) {
      const named = [...(operation.description ?? '').matchAll(/4\d\d `(\w+)`/g)].map(([, code]) => code)
      const shown = responsesOf(operation).flatMap(([, { content }]) =>
        Object.keys(content?.['application/problem+json']?.examples ?? {}),
      )
      expect(shown, operation.operationId).to.include.members(named)
    }
  })

  it('links what makes an id to what takes it, by operations and parameters that exist', () => {
    const linked = new Set<string>()
    for (const operation of operations) {
      for (const [, { links = {} }] of responsesOf(operation)) {
        for (const { operationId, parameters } of Object.values(links)) {
          const target = operations.find((candidate) => candidate.operationId === operationId)!
          const taken = (target.parameters ?? []).map(({ name }) => name)
          expect(taken, operationId).to.include.members(Object.keys(parameters))
          const inPath = (target.parameters ?? []).filter((one) => one.in === 'path').map(({ name }) => name)
          expect(Object.keys(parameters), operationId).to.include.members(inPath)
          linked.add(operationId)
        }
      }
    }
    const takesIds = operations.filter(({ parameters = [] }) =>
      parameters.some((one) => one.in === 'path' && !['orgId', 'memberId'].includes(one.name)),
    )
    expect([...linked]).to.include.members(takesIds.map(({ operationId }) => operationId))
  })

  it('describes what endpoints receive: every event key and the test event, with headers and payload', () => {
    expect(received.map(({ key }) => key)).to.have.members([
      ...builtInCatalogue.eventKeys.map(({ key }) => key),
      'webhook:test',
    ])
    for (const { key, post } of received) {
      const headers = post.parameters!.map(
        ({ $ref = '' }) => document.components.parameters[$ref.replace('#/components/parameters/', '')]!.name,
      )
      expect(headers).to.include.members(['X-Webhook-Event-ID', 'X-Webhook-Signature'])
      const [body] = Object.values(post.requestBody!.content)
      const { example } = builtInCatalogue.eventKeys.find((entry) => entry.key === key) ?? {}
      if (example !== undefined) expect(body!.example).to.deep.include({ event: key, data: example })
      expectFits({ $ref: '#/components/schemas/ReceivedEvent' }, body!.example, key)
    }
  })

  it('states the payload schema of each key as the catalogue has it, and that more fields may come', () => {
    const invoice = schemas['InvoicePaidData']!
    expect(invoice['additionalProperties']).to.equal(true)
    expectFits(
      { $ref: '#/components/schemas/PublishEvent' },
      { event: 'invoice:paid', data: { invoice: { id: 'i', more: 1 }, payment: { id: 'p' }, more: 1 } },
      'more fields',
    )
    const fits = ajv.compile({ $ref: 'openapi.json#/components/schemas/PublishEvent' })
    for (const wrong of [
      { event: 'invoice:paid', data: {} },
      { event: 'invoice:unknown', data: {} },
      { event: 'comment:created' },
      { event: 'comment:created', data: {}, more: 1 },
    ])
      expect(fits(wrong), JSON.stringify(wrong)).to.equal(false)
  })

  it('is made of the catalogue that is given, whatever its keys and references look like', () => {
    const entry = { meaning: 'm', permission: 'boat:read', subscribable: true }
    const schema = {
      $id: 'https://example.com/boat',
      type: 'object',
      properties: { size: { $ref: '#/$defs/size' } },
      required: ['size'],
      $defs: { size: { type: 'integer', minimum: 1 } },
    }
    const boats = parse(routes, [
      { ...entry, key: 'boat:moved-out', schema, example: { size: 2 } },
      { ...entry, key: 'boat:moved:out', schema: null, example: { id: 'b' }, subscribable: false },
    ])
    expect(Object.keys(boats.webhooks)).to.deep.equal(['boat:moved-out', 'boat:moved:out', 'webhook:test'])
    const named = boats.components.schemas
    expect(named).to.include.keys('BoatMovedOutEvent', 'BoatMovedOut2Event', 'BoatMovedOutData')
    expect(named['SubscribableEventKey']).to.deep.include({ enum: ['boat:moved-out'] })
    const boatAjv = new Ajv2020({ strict: false })
    ajvFormats.default(boatAjv)
    boatAjv.addSchema({ $id: 'boats.json', ...boats })
    const fits = boatAjv.compile({ $ref: 'boats.json#/components/schemas/PublishEvent' })
    expect(fits({ event: 'boat:moved-out', data: { size: 2 } })).to.equal(true)
    expect(fits({ event: 'boat:moved-out', data: { size: 0 } })).to.equal(false)
    expect(fits({ event: 'boat:moved:out', data: { size: 0 } })).to.equal(true)
    expect(fits({ event: 'invoice:paid', data: {} })).to.equal(false)
  })

  it('gives every schema a name of its own, also where event keys would yield those of others', () => {
    const names = Object.keys(schemas).flatMap((name) => [name, name.replace(/^Publish|(Event|Data)$/, '')])
    const keys = new Set(names.map((name) => name.replaceAll(/(?<=.)(?=[A-Z])/g, ':').toLowerCase()))
    const entry = { meaning: 'm', permission: 'boat:read', subscribable: true, example: {} }
    const checked = ['publish:x', 'x:event', 'x:data', ...keys]
      .filter((key) => key.includes(':') && key !== 'webhook:test')
      .map((key) => ({ ...entry, key, schema: { type: 'object' } }))
    const named = parse(routes, [...checked, { ...entry, key: 'no:schema', schema: null }]).components.schemas
    const ofKeys = ['NoSchemaEvent', 'PublishOtherEvent', 'OtherEventKey', 'SubscribableEventKey']
    const count = Object.keys(parse(routes, []).components.schemas).length + 3 * checked.length
    expect(Object.keys(named))
      .to.include.members(ofKeys)
      .and.have.length(count + ofKeys.length)
  })
})

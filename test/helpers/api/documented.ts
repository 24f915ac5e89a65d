import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { openApiDocument } from '../../../src/http/openapi.ts'
import { routes } from '../../../src/http/routes/index.ts'
import type { ApiResponse } from './api.ts'
import { resolveReference, type DocumentedOperation } from './document-requests.ts'

type Document = { paths: Record<string, Record<string, DocumentedOperation>> }
type Content = { schema: object; examples?: object }
type Response = { content?: Record<string, Content>; headers?: Record<string, unknown> }

const document = openApiDocument(routes, builtInCatalogue)
const ajv = new Ajv2020({ strict: false, allErrors: true })
ajvFormats.default(ajv)
for (const format of ['mail-address', 'time-zone', 'p256-public-key']) ajv.addFormat(format, true)
ajv.addSchema({ $id: 'openapi.json', ...document })

/** The paths of the document, those with the fewest ids first: a name in the place of an id is a path of its own. */
const paths = Object.entries((document as Document).paths)
  .map(([path, operations]) => ({ parts: path.split(/\{\w+\}/), operations }))
  .sort((one, other) => one.parts.length - other.parts.length)
  .map(({ parts, operations }) => ({ matches: new RegExp(`^${parts.join('[^/]+')}$`), operations }))

const validators = new Map<object, ValidateFunction>()

/** Compiled once for all answers of this schema. */
function validatorOf(schema: object): ValidateFunction {
  const made = validators.get(schema)
  if (made !== undefined) return made
  const text = JSON.stringify(schema).replaceAll('"#/', '"openapi.json#/')
  const validate = ajv.compile(JSON.parse(text) as object)
  validators.set(schema, validate)
  return validate
}

/** Fails where the OpenAPI document does not state the answer to a request: its status, headers, type, schema and code. */
export function expectDocumented(method: string, target: string, answer: ApiResponse): void {
  const [path = ''] = target.split('?')
  const operations = paths.find(({ matches }) => matches.test(path))?.operations
  const operation = operations?.[method.toLowerCase()]
  if (operation === undefined) return
  const at = `${method} ${path} (${operation.operationId}) ${answer.status}: ${answer.text}`
  const stated = operation.responses[answer.status]
  expect(stated, at).to.not.equal(undefined)
  const { content, headers = {} } = resolveReference(document, stated!) as Response
  // Those of rate limits are stated where a limit is set.
  for (const header of Object.keys(headers).filter((name) => !name.startsWith('RateLimit')))
    expect(answer.headers.get(header), `${at} ${header}`).to.be.a('string')
  if (content === undefined) {
    expect(answer.text, at).to.equal('')
    return
  }
  const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
  expect(Object.keys(content), at).to.include(type)
  if (type === 'text/event-stream') return
  const { code } = answer.json as { code?: string }
  if (type === 'application/problem+json') expect(content[type]!.examples, at).to.have.property(code!)
  const validate = validatorOf(content[type]!.schema)
  expect(validate(answer.json ?? answer.text), `${at} ${JSON.stringify(validate.errors)}`).to.equal(true)
}

import { Validator } from '@seriousme/openapi-schema-validator'
import { expect } from 'chai'
import { routes } from '../../../src/http/routes/index.ts'
import { useApi } from '../../helpers/api/api.ts'

type Operation = {
  security: object[]
  parameters?: { name: string; in: string }[]
  responses: Record<string, { headers?: Record<string, unknown> }>
}
type Document = { paths: Record<string, Record<string, Operation>> }

/** `TestApi.call` compares each answer of the tests of the API with the document. */
describe('/openapi.json', () => {
  const suite = useApi()
  let document: Document

  before(async () => {
    document = (await suite.api.call('GET', '/openapi.json')).json as Document
  })

  const documented = (): [path: string, method: string, Operation][] =>
    Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]): [string, string, Operation] => [
        path,
        method,
        operation,
      ]),
    )

  it('documents the limits of every route: by address, and by key where the route asks for one', () => {
    for (const [path, method, { security, responses }] of documented()) {
      const at = `${method} ${path}`
      const isLimited = security.length > 0
      const isProbe = path === '/healthz' || path === '/readyz'
      expect('429' in responses, at).to.equal(!isProbe)
      for (const [status, { headers = {} }] of Object.entries(responses))
        if (/^2/.test(status))
          expect(Object.keys(headers).includes('RateLimit'), `${at} ${status}`).to.equal(isLimited)
    }
  })

  it('is valid OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect(valid, JSON.stringify(errors)).to.equal(true)
  })

  it('documents every served route, and no other', () => {
    const served = routes.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
    expect(documented().map(([path, method]) => `${method.toUpperCase()} ${path}`)).to.have.members(served)
  })

  it('declares every parameter of its paths', () => {
    for (const [path, method, { parameters = [] }] of documented()) {
      const declared = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      expect(declared, `${method} ${path}`).to.have.members(inPath)
    }
  })

  it('declares the query parameters of every route that has any, with their defaults', () => {
    for (const { method, path, query } of routes) {
      const { parameters = [] } = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
      const declared = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name)
      expect(declared, `${method} ${path}`).to.have.members(Object.keys(query?.properties ?? {}))
    }
    const list = document.paths['/api/orgs/{orgId}/webhooks/{id}/deliveries']!['get']!
    const limit = list.parameters!.find(({ name }) => name === 'limit')
    expect(limit).to.deep.include({ in: 'query', required: false })
    expect(limit).to.have.property('schema').that.includes({ minimum: 1, maximum: 100, default: 50 })
  })

  it('requires a key wherever the API does', async () => {
    for (const [path, method, { security }] of documented()) {
      const { status } = await suite.api.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x'))
      expect(security.length > 0, `${method} ${path}`).to.equal(status === 401)
    }
  })
})

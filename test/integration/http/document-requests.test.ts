import { expect } from 'chai'
import fc from 'fast-check'
import {
  type DocumentedOperation,
  type DocumentedRequest,
  requestsOf,
} from '../../helpers/api/document-requests.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { secretOf } from '../../helpers/api/operator.ts'
import { type ApiResponse, useApi } from '../../helpers/api/api.ts'

const RUNS_PER_OPERATION = 10
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Refusals for what a request means; no schema can tell. */
const BY_MEANING = new Set([
  'invalid_public_key',
  'host_not_public',
  'port_not_allowed',
  'invalid_host',
  'invalid_url',
])

/** Fields whose values only mean something by a list of places, by the time of the day, or beside another field. */
const BY_POINTER = new Set(['/timeZone', '/expiresAt', '/since', '/until'])

/** It would take away what the other requests need. */
const LEFT_OUT = 'eraseOrganisation'

type Document = { paths: Record<string, Record<string, DocumentedOperation>> }

describe('requests made from the OpenAPI document', () => {
  const suite = useApi()
  let document: Document
  let member: TestMember
  let known: Record<string, string>
  let sent = 0

  before(async () => {
    const { dataSource } = suite.database
    document = (await suite.api.call('GET', '/openapi.json')).json as Document
    member = await createMember(dataSource)
    const { organisationId } = member
    const webhook = await createWebhookRow(dataSource, { organisationId, url: 'https://hooks.customer.com/' })
    const [delivery] = await publishRow(dataSource, organisationId)
    known = { orgId: organisationId, id: webhook.id, deliveryId: delivery!.deliveryId }
  })
  after(() => process.stdout.write(`      ${sent} requests\n`))

  const operations = (): [path: string, method: string, operation: DocumentedOperation][] =>
    Object.entries(document.paths).flatMap(([path, ofPath]) =>
      Object.entries(ofPath).map(([method, operation]): [string, string, DocumentedOperation] => [
        path,
        method.toUpperCase(),
        operation,
      ]),
    )

  async function send(path: string, method: string, request: DocumentedRequest): Promise<ApiResponse> {
    sent++
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(request.path[name]!))
    const query = new URLSearchParams(request.query).toString()
    const isForOperators = path.startsWith('/api/operator')
    return suite.api.call(method, `${filled}${query === '' ? '' : `?${query}`}`, {
      ...(isForOperators ? {} : { apiKey: member.apiKey }),
      headers: { ...request.headers, ...(isForOperators ? { 'x-operator-key': secretOf('all') } : {}) },
      ...(request.body === undefined ? {} : { body: request.body }),
    })
  }

  function isForMeaning({ status, json }: ApiResponse): boolean {
    const { code: problem, errors = [] } = json as {
      code: string
      errors?: { pointer: string; code: string }[]
    }
    // Short keys come again by chance, with another body.
    if (problem === 'idempotency_key_reused') return true
    const isMeant = ({ pointer, code }: { pointer: string; code: string }): boolean =>
      BY_MEANING.has(code) || BY_POINTER.has(pointer)
    return status === 422 && errors.length > 0 && errors.every(isMeant)
  }

  it('are never refused for their form, and get an answer that the document states', async () => {
    for (const [path, method, operation] of operations()) {
      if (operation.operationId === LEFT_OUT) continue
      await fc.assert(
        fc.asyncProperty(requestsOf(document, operation, known), async (request) => {
          const answer = await send(path, method, request)
          expect(answer.status, answer.text).to.be.below(500)
          if ([400, 413, 415, 422].includes(answer.status) && !isForMeaning(answer))
            expect.fail(`${operation.operationId} ${JSON.stringify(request)}: ${answer.text}`)
        }),
        { numRuns: RUNS_PER_OPERATION },
      )
    }
  })

  it('are answered 405 with exactly the methods of their path where the document has no such method', async () => {
    for (const [path, ofPath] of Object.entries(document.paths)) {
      const [operation] = Object.values(ofPath)
      const stated = Object.keys(ofPath).map((method) => method.toUpperCase())
      const allowed = stated.includes('GET') ? [...stated, 'HEAD'] : stated
      const [sample] = fc.sample(requestsOf(document, operation!, known), 1)
      const request = { path: sample!.path, query: {}, headers: {}, body: undefined }
      for (const method of METHODS.filter((candidate) => !stated.includes(candidate))) {
        const answer = await send(path, method, request)
        expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(405)
        expect(answer.headers.get('allow')?.split(', '), `${method} ${path}`).to.have.members(allowed)
      }
    }
  })

  it('reach what an answer links to', async () => {
    const { organisationId } = member
    const body = { url: 'https://hooks.customer.com/linked', subscribedEventKeys: ['*'], enabled: true }
    const made = await suite.api.call('POST', `/api/orgs/${organisationId}/webhooks`, { ...member, body })
    const { responses } = document.paths['/api/orgs/{orgId}/webhooks']!['post']!
    const { links } = responses['201'] as { links: Record<string, { operationId: string }> }
    const path = { orgId: organisationId, id: (made.json as { id: string }).id }
    // Deleted last.
    const ids = Object.keys(links).sort(
      (a, b) => Number(a === 'deleteWebhook') - Number(b === 'deleteWebhook'),
    )
    expect(ids).to.include.members(['getWebhook', 'updateWebhook', 'listDeliveries', 'deleteWebhook'])
    const bodies: Record<string, object> = {
      updateWebhook: { enabled: true },
      discardDeliveries: { filter: { state: 'failed' } },
      replayEvents: { since: new Date(0).toISOString(), dryRun: true },
    }
    for (const id of ids) {
      const [at, method] = operations().find(([, , { operationId }]) => operationId === id)!
      const request = {
        path,
        query: {},
        headers: {},
        body: bodies[id],
      }
      expect((await send(at, method, request)).status, id).to.be.within(200, 204)
    }
  })
})

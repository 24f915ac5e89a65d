import { expect } from 'chai'
import { describeBadInput, EVENTS, expectRefusal, WEBHOOK, WEBHOOKS } from '../../helpers/api/bad-input.ts'
import type { BadInput } from '../../helpers/api/bad-input.ts'
import { sendBytes } from '../../helpers/api/raw-request.ts'

const notFound = { status: 404, code: 'not_found' }
const notAllowed = { status: 405, code: 'method_not_allowed' }

const paths: BadInput[] = [
  '/api',
  '/api/orgs/{org}',
  `${WEBHOOKS}/`,
  `${WEBHOOK}/`,
  `${WEBHOOK}/incidents/{unknown}`,
  `/API/orgs/{org}/webhooks`,
  `/api//orgs/{org}/webhooks`,
  '/api/orgs/{org}%2fwebhooks',
  `${WEBHOOKS}/{webhook}%2fsigning-secret`,
  '/__proto__',
  '/%zz',
].map((path) => ({ title: `the path ${path}`, path, ...notFound }))

const undecodable: BadInput[] = [
  '/api/orgs/%zz/webhooks',
  '/api/orgs/%2f/webhooks',
  `${WEBHOOKS}/%ff`,
  `${EVENTS}/..%2f..%2fwebhooks`,
].map((path) => ({ title: `the path ${path}`, path, ...notFound }))

const GET = ['GET', 'HEAD']
const methods: BadInput[] = [
  // Those that are in no document; the test of the document tries the others at every path.
  ...['TRACE', 'PURGE', 'PROPFIND'].map((method) => refusedMethod(method, WEBHOOKS, [...GET, 'POST'])),
  // A path that also matches one with an id answers for itself.
  ...['POST', 'DELETE'].flatMap((method) =>
    ['test', 'activity', 'signing-secret'].map((name) =>
      refusedMethod(method, `${WEBHOOKS}/retry-deliveries/${name}`, GET),
    ),
  ),
  ...['POST', 'DELETE'].map((method) => refusedMethod(method, `${WEBHOOK}/deliveries/discard`, GET)),
  ...['GET', 'PUT'].map((method) => refusedMethod(method, `${WEBHOOK}/deliveries/discard/discard`, ['POST'])),
  refusedMethod('POST', '/', GET),
]

function refusedMethod(method: string, path: string, allow: string[]): BadInput {
  return { title: `${method} ${path}`, method, path, allow, ...notAllowed }
}

describeBadInput('a path that leads nowhere', [...paths, ...undecodable])

describeBadInput('a method that the path does not take', methods, (world) => {
  it('refuses a method before it asks for a key', async () => {
    const answer = await world().send({ method: 'PUT', headers: { 'x-api-key': null } })
    expectRefusal(answer, notAllowed)
  })
})

/** What is wrong with a request line or its headers, and its answer; only a raw socket can send it. */
const RAW: readonly [title: string, head: string, answer: RegExp][] = [
  [
    'a target that is no URL',
    'GET http://[bad/healthz HTTP/1.1\r\nHost: x',
    /^HTTP\/1\.1 400 .*malformed_path/s,
  ],
  [
    'a target with a broken escape',
    'GET http://%zz@x/healthz HTTP/1.1\r\nHost: x',
    /^HTTP\/1\.1 400 .*malformed_path/s,
  ],
  ['the target *', 'OPTIONS * HTTP/1.1\r\nHost: x', /^HTTP\/1\.1 404 .*not_found/s],
  ['a query with a broken escape', 'GET /healthz?a=%zz HTTP/1.1\r\nHost: x', /^HTTP\/1\.1 200 /],
  ['two Host headers', 'GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b', /^HTTP\/1\.1 (200|400) /],
  ['CONNECT', 'CONNECT receiver.example.com:443 HTTP/1.1\r\nHost: x', /^(HTTP\/1\.1 40\d .*)?$/s],
]

describeBadInput('a request that only a raw socket sends', [], (world) => {
  it('answers a body without a length as JSON that is missing', async () => {
    const { api, names } = world()
    const head = `POST /api/orgs/${names['org'] ?? ''}/webhooks HTTP/1.1\r\nHost: x\r\nx-api-key: ${names['key'] ?? ''}`
    const answer = await sendBytes(
      api.url,
      `${head}\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n`,
    )
    expect(answer).to.match(/^HTTP\/1\.1 400 .*malformed_json/s)
  })

  for (const [title, head, answer] of RAW) {
    it(`survives ${title}`, async () => {
      const { api } = world()
      expect(await sendBytes(api.url, `${head}\r\nConnection: close\r\n\r\n`)).to.match(answer)
      expect((await api.call('GET', '/healthz')).status).to.equal(200)
    })
  }
})

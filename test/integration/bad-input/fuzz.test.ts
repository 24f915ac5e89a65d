import { expect } from 'chai'
import fc from 'fast-check'
import { routes } from '../../../src/http/routes/index.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { useApi } from '../../helpers/api/api.ts'

/** Where there is a body to bend; the others vary by their query and ids alone. */
const RUNS_PER_ROUTE = 40
const RUNS_WITHOUT_BODY = 10

/** Bodies that are right, by operation, for a fuzzer to bend. */
const GOOD: Record<string, object> = {
  createWebhook: { url: 'https://hooks.customer.com/', subscribedEventKeys: ['invoice:paid'], enabled: true },
  updateWebhook: { enabled: true, description: 'x' },
  retryDeliveries: { mode: 'failed' },
  replayEvents: { since: '2026-01-01T00:00:00.000Z', eventKeys: ['customer:created'], include: 'all' },
  createOwnApiKey: { name: 'another', expiresAt: '2099-01-01T00:00:00Z' },
  discardDeliveries: { filter: { state: 'failed', eventKey: 'invoice:paid', statusCode: 500 } },
  testWebhook: { eventKey: 'customer:created' },
  publishEvent: { event: 'customer:created', data: { id: 'cus_1' }, traceId: 't', triggeredBy: null },
  createPushSubscription: { endpoint: 'https://push.browser.com/', keys: { p256dh: 'BA', auth: 'AA' } },
}

/** Text that has broken parsers, databases and headers before. */
const NASTY = [
  '\u0000',
  '\ud800',
  '__proto__',
  "'; DROP TABLE webhook; --",
  '%00',
  '../..',
  '\r\nx: y',
  '1e999',
]

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(...NASTY, 'x'.repeat(5_000)),
)
const value = fc.oneof(
  { weight: 3, arbitrary: text },
  { weight: 2, arbitrary: fc.constantFrom(null, true, 0, -1, 1e308, [], {}, [[]], { toString: 1 }) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 4 }) },
)

/** A good body with some of its fields replaced, added or gone. */
function bent(good: object): fc.Arbitrary<string> {
  const names = [...Object.keys(good), '__proto__', 'constructor', 'id', 'organisationId', 'secret']
  return fc
    .array(fc.tuple(fc.constantFrom(...names), value, fc.boolean()), { minLength: 1, maxLength: 4 })
    .map((changes) => {
      const body = new Map<string, unknown>(Object.entries(good))
      for (const [name, to, remove] of changes) {
        if (remove) body.delete(name)
        else body.set(name, to)
      }
      // Written by hand: an object literal would take `__proto__` for its prototype.
      const members = [...body].map(([name, to]) => `${JSON.stringify(name)}:${JSON.stringify(to)}`)
      return `{${members.join(',')}}`
    })
}

const rawBody = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.json(),
  fc.constantFrom('[', '{"a":', '[[[['.repeat(500), '"\\ud800"', '{"a":1}{"a":2}', '\ufeff{}', 'nul'),
)

const query = fc.oneof(
  fc.constant(''),
  fc
    .dictionary(fc.constantFrom('state', 'limit', 'cursor', 'since', 'webhookId', 'x'), text, { maxKeys: 3 })
    .map((parameters) => `?${new URLSearchParams(parameters).toString()}`),
  fc.constantFrom('?limit=%', '?limit=1&limit=2', '?cursor=%ff%fe', '?&&==', `?since=${'9'.repeat(400)}`),
)

describe('requests at random', () => {
  const suite = useApi()
  let member: TestMember
  let ids: Record<string, string>
  let sent = 0

  before(async () => {
    const { dataSource } = suite.database
    member = await createMember(dataSource)
    const { organisationId } = member
    const webhook = await createWebhookRow(dataSource, { organisationId, url: 'https://hooks.customer.com/' })
    const [delivery] = await publishRow(dataSource, organisationId)
    ids = { orgId: organisationId, id: webhook.id, deliveryId: delivery!.deliveryId }
  })
  after(() => process.stdout.write(`      ${sent} requests, no answer of 5xx\n`))

  for (const route of routes) {
    it(`${route.method} ${route.path}: never causes a fault`, async () => {
      const id = fc.oneof(
        { weight: 4, arbitrary: fc.constant(null) },
        {
          weight: 1,
          arbitrary: text.map((odd) => encodeURIComponent(odd.replace(/[\ud800-\udfff]/gu, '-'))),
        },
      )
      const body: fc.Arbitrary<string | undefined> =
        route.body === undefined
          ? fc.constant(undefined)
          : fc.oneof(bent(GOOD[route.operationId] ?? {}), rawBody)
      await fc.assert(
        fc.asyncProperty(body, query, id, async (raw, search, odd) => {
          sent++
          const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) =>
            name !== 'orgId' && odd !== null ? odd || '-' : (ids[name] ?? ids['id']!),
          )
          const answered = await suite.api.call(route.method, `${path}${search}`, {
            apiKey: member.apiKey,
            ...(raw === undefined ? {} : { raw }),
          })
          expect(answered.status, answered.text).to.be.below(500)
          if (answered.status >= 400) {
            expect(answered.headers.get('content-type')).to.equal('application/problem+json')
            expect(answered.json).to.have.property('code')
          }
        }),
        { numRuns: route.body === undefined ? RUNS_WITHOUT_BODY : RUNS_PER_ROUTE },
      )
    })
  }
})

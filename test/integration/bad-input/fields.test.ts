import { createECDH } from 'node:crypto'
import { expect } from 'chai'
import {
  describeBadInput,
  EVENTS,
  expectRefusal,
  goodEvent,
  goodWebhook,
  WEBHOOK,
  WEBHOOKS,
  type BadInput,
} from '../../helpers/api/bad-input.ts'
import { secretOf } from '../../helpers/api/operator.ts'

/** What a schema alone refuses is tried by `schemas.test.ts`, at every field of every body. */
const refused =
  (what: string, path: string, request: Partial<BadInput> = {}) =>
  (title: string, json: unknown, ...pointers: string[]): BadInput => ({
    title: `${what} ${title}`,
    path,
    json,
    pointers,
    status: 422,
    code: 'invalid_fields',
    ...request,
  })

const webhook = refused('a webhook', WEBHOOKS)
const keys = (title: string, subscribedEventKeys: unknown, ...pointers: string[]): BadInput =>
  webhook(
    title,
    { ...goodWebhook, subscribedEventKeys },
    ...pointers.map((pointer) => `/subscribedEventKeys${pointer}`),
  )

/** `test/unit/outbound/url-rules.test.ts` has every rule of URLs. */
const webhooks: BadInput[] = [
  keys(
    'with several bad keys, naming each',
    ['x', 'invoice:paid', 'invoice:*', 'Invoice:Paid'],
    '/0',
    '/2',
    '/3',
  ),
  keys('with the names of inherited properties', ['constructor', '__proto__'], '/0', '/1'),
  keys('with * before another key', ['*', 'invoice:paid'], '/0'),
  keys('with * after another key', ['invoice:paid', '*'], '/1'),
  keys('with * twice', ['*', '*'], '/1', '/0'),
  keys('with one key twice', ['invoice:paid', 'customer:created', 'invoice:paid'], '/2'),
  keys('with organizationSettings:updated by name', ['organizationSettings:updated'], '/0'),
  keys('with the key of test events', ['webhook:test'], '/0'),
  {
    title: 'a webhook with __proto__ and constructor',
    body: `{"__proto__":{"enabled":true},"constructor":{},${JSON.stringify(goodWebhook).slice(1)}`,
    pointers: ['/__proto__', '/constructor'],
    status: 422,
    code: 'invalid_fields',
  },
  webhook(
    'with several faults of every kind, naming each field',
    {
      url: 'http://receiver.example.com/',
      subscribedEventKeys: ['nope'],
      enabled: null,
      id: 'x',
      secret: 'x',
    },
    ...['/url', '/subscribedEventKeys/0', '/enabled', '/id', '/secret'],
  ),
  refused('a change', WEBHOOK, { method: 'PATCH' })(
    'to a bad URL and unknown event keys',
    { url: 'http://receiver.example.com/', subscribedEventKeys: ['nope', '*'] },
    ...['/url', '/subscribedEventKeys/0', '/subscribedEventKeys/1'],
  ),
]

const since = '2026-01-01T00:00:00.000Z'
const replay = refused('a replay', `${WEBHOOK}/replays`)
const replays: BadInput[] = [
  replay('from the future', { since: '2100-01-01T00:00:00.000Z' }, '/since'),
  replay('to before its start', { since, until: '2025-01-01T00:00:00.000Z' }, '/until'),
  replay('to its start', { since, until: since }, '/until'),
  replay('of an unknown key', { since, eventKeys: ['invoice:paid', 'invoice:eaten'] }, '/eventKeys/1'),
  replay('of *', { since, eventKeys: ['*'] }, '/eventKeys/0'),
]

const ownKey = refused("a member's own key", '/api/orgs/{org}/api-keys')
const ownKeys = [
  ownKey('that ends in the past', { name: 'ci', expiresAt: '2020-01-01T00:00:00Z' }, '/expiresAt'),
]

const event = refused('an event', EVENTS)
const events: BadInput[] = [
  event('with the key *', { event: '*', data: {} }, '/event'),
  event('with the key of test events', { event: 'webhook:test', data: {} }, '/event'),
  event(
    'with data outside its enumerations',
    {
      event: 'invoice:paid',
      data: {
        invoice: { id: 'inv_1', status: 'EATEN', amountTotal: '1' },
        payment: { id: 'pay_1', channel: 'PIGEON' },
      },
    },
    ...['/data/invoice/status', '/data/invoice/amountTotal', '/data/payment/channel'],
  ),
  event(
    'with several faults of every kind, naming each field',
    { event: 'nope', data: 1, timestamp: 'now', extra: true },
    ...['/event', '/data', '/timestamp', '/extra'],
  ),
]

const point = createECDH('prime256v1').generateKeys()
const p256dh = point.toString('base64url')
const auth = Buffer.alloc(16, 7).toString('base64url')
const good = { endpoint: 'https://push.example.com/send/abc', expirationTime: null, keys: { p256dh, auth } }
const subscription = refused('a push subscription', '/api/orgs/{org}/push-subscriptions')
const key = (name: 'p256dh' | 'auth', title: string, value: unknown): BadInput =>
  subscription(`with ${name} ${title}`, { ...good, keys: { ...good.keys, [name]: value } }, `/keys/${name}`)
const text = (...bytes: Uint8Array[]): string => Buffer.concat(bytes).toString('base64url')
const offCurve = Buffer.from(point)
offCurve[64]! ^= 1

const subscriptions: BadInput[] = [
  subscription(
    'at cloud metadata',
    { ...good, endpoint: 'https://169.254.169.254/latest/meta-data' },
    '/endpoint',
  ),
  subscription(
    'whose endpoint grows too long when it is written plainly',
    { ...good, endpoint: `https://push.example.com/${'é'.repeat(1000)}` },
    '/endpoint',
  ),
  key('p256dh', 'of a point that is not on the curve', text(offCurve)),
  key('p256dh', 'with coordinates beyond the field', text(Buffer.of(4), Buffer.alloc(64, 0xff))),
  key('p256dh', 'of a compressed point', text(Buffer.of(2), point.subarray(1, 33))),
  key('p256dh', 'of a hybrid point', text(Buffer.of(6 + (point[64]! % 2)), point.subarray(1))),
  key('p256dh', 'with a byte too few', text(point.subarray(0, 64))),
  key('p256dh', 'with a lone surrogate', `${p256dh.slice(0, 86)}\udc00`),
  key('p256dh', 'in base64 with other characters', `+/${p256dh.slice(2)}`),
  key('auth', 'with a byte too many', text(Buffer.alloc(17))),
  key('auth', 'with too little padding', `${auth}=`),
  key('auth', 'whose last character says more than it may', `${auth.slice(0, -1)}z`),
  {
    ...subscription('with an expiration that no number can hold', undefined, '/expirationTime'),
    body: JSON.stringify(good).replace('null', '1e999'),
  },
]

const operator = { method: 'PUT', headers: { 'x-api-key': null, 'x-operator-key': '{operatorKey}' } }
const ORGANISATIONS = '/api/operator/organisations'
const zon = { name: 'Zon', email: 'info@zon.example' }
const ofOperators: BadInput[] = [
  refused('an organisation', `${ORGANISATIONS}/a%20b`, operator)('with a space in its id', zon, '/orgId'),
  refused('an organisation', `${ORGANISATIONS}/%00`, operator)('with NUL in its id', zon, '/orgId'),
  refused('a member', `${ORGANISATIONS}/{org}/members/a.b`, operator)(
    'with a dot in its id',
    zon,
    '/memberId',
  ),
]

const LINKS = `${ORGANISATIONS}/{org}/members/{member}/portal-links`
const OPEN = '/api/session/portal-link'
const asPage = { 'x-api-key': null, 'sec-fetch-site': 'same-origin' }
/** `test/unit/accounts/portal-links.test.ts` has every path. */
const portal: BadInput[] = [
  refused('a portal link', LINKS, { headers: { 'x-api-key': null, 'x-operator-key': secretOf('portal') } })(
    'to another host',
    { path: '//evil.example' },
    '/path',
  ),
  refused('the opening of a portal link', OPEN, { headers: asPage })('without a token', {}, '/token'),
  {
    title: 'a form of another site with a portal link',
    path: OPEN,
    headers: { ...asPage, 'content-type': 'text/plain' },
    body: '{"token":"x"}',
    status: 415,
    code: 'unsupported_media_type',
  },
]

const inputs = [...webhooks, ...replays, ...ownKeys, ...events, ...subscriptions, ...ofOperators, ...portal]

describeBadInput('fields that cannot be accepted', inputs, (world) => {
  it('are named, a hundred at most, however many are bad', async () => {
    const fields = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`f${index}`, index]))
    const answer = await world().send({ path: EVENTS, json: { ...goodEvent, ...fields } })
    expect(answer.status).to.equal(422)
    expect((JSON.parse(answer.text) as { errors: unknown[] }).errors).to.have.lengthOf(100)
  })

  it('leave nothing of their event', async () => {
    const { database, names } = world()
    const [row] = await database.dataSource.query<{ events: number }[]>(
      'SELECT count(*)::int AS events FROM event WHERE organisation_id = $1',
      [names['org']],
    )
    expect(row).to.deep.equal({ events: 0 })
  })

  it('answer 403 needs_tls where a page opens a portal link over plain HTTP from another machine', async () => {
    const headers = { ...asPage, host: 'hooks.example.com' }
    const answer = await world().send({ path: OPEN, headers, json: { token: 'x'.repeat(43) } })
    expectRefusal(answer, { status: 403, code: 'needs_tls' })
    expect(answer.headers).to.not.have.property('set-cookie')
  })
})

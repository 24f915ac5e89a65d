import { expect } from 'chai'
import {
  describeBadInput,
  EVENTS,
  goodEvent,
  goodWebhook,
  WEBHOOK,
  WEBHOOKS,
} from '../../helpers/api/bad-input.ts'
import type { BadInput, World } from '../../helpers/api/bad-input.ts'

const PUSH_SUBSCRIPTIONS = '/api/orgs/{org}/push-subscriptions'

const unauthenticated = { status: 401, code: 'unauthenticated' }
const notFound = { status: 404, code: 'not_found' }
const missingPermission = { status: 403, code: 'missing_permission' }

const badKeys: BadInput[] = [
  { title: 'no key', headers: { 'x-api-key': null }, ...unauthenticated },
  { title: 'an empty key', headers: { 'x-api-key': '' }, ...unauthenticated },
  { title: 'a key that is too short to be one', headers: { 'x-api-key': 'garbled' }, ...unauthenticated },
  {
    title: 'a key with other characters',
    headers: { 'x-api-key': '{key} \u00e9\u00e9' },
    ...unauthenticated,
  },
  { title: 'a key of 10 000 characters', headers: { 'x-api-key': 'k'.repeat(10_000) }, ...unauthenticated },
  { title: 'an unknown key', headers: { 'x-api-key': 'x'.repeat(40) }, ...unauthenticated },
  { title: 'a key with a character too much', headers: { 'x-api-key': '{key}x' }, ...unauthenticated },
  { title: 'one key sent twice', headers: { 'x-api-key': ['{key}', '{key}'] }, ...unauthenticated },
  { title: 'two keys', headers: { 'x-api-key': ['{key}', '{otherKey}'] }, ...unauthenticated },
  {
    title: 'a key in the query string',
    path: `${WEBHOOKS}?x-api-key={key}`,
    headers: { 'x-api-key': null },
    ...unauthenticated,
  },
  {
    title: 'a key as a bearer token',
    headers: { 'x-api-key': null, authorization: 'Bearer {key}' },
    ...unauthenticated,
  },
  {
    title: 'no key for the event keys',
    path: '/api/event-keys',
    headers: { 'x-api-key': null },
    ...unauthenticated,
  },
  {
    title: 'no key for the push subscriptions',
    path: PUSH_SUBSCRIPTIONS,
    headers: { 'x-api-key': null },
    ...unauthenticated,
  },
  {
    title: 'no key with a body that is no JSON',
    body: '{',
    headers: { 'x-api-key': null },
    ...unauthenticated,
  },
]

const foreign: BadInput[] = [
  ...['{otherOrg}', 'no-such-organisation', '%00', "';--", '*', '%2e%2e'].map((org) => ({
    title: `the organisation ${org}`,
    path: `/api/orgs/${org}/webhooks`,
    ...notFound,
  })),
  {
    title: 'publishing into another organisation',
    path: '/api/orgs/{otherOrg}/events',
    json: goodEvent,
    ...notFound,
  },
  ...['GET', 'DELETE'].map((method) => ({
    title: `${method} of the push subscriptions of another organisation`,
    method,
    path: '/api/orgs/{otherOrg}/push-subscriptions',
    ...notFound,
  })),
  {
    title: 'subscribing to push messages of another organisation',
    path: '/api/orgs/{otherOrg}/push-subscriptions',
    json: {},
    ...notFound,
  },
]

const lacking: BadInput[] = [
  {
    title: 'listing without webhook:read',
    headers: { 'x-api-key': '{nobodyKey}' },
    missingPermissions: ['webhook:read'],
    ...missingPermission,
  },
  {
    title: 'the incidents without webhook:read',
    path: `${WEBHOOK}/incidents`,
    headers: { 'x-api-key': '{nobodyKey}' },
    missingPermissions: ['webhook:read'],
    ...missingPermission,
  },
  {
    title: 'creating without webhook:manage',
    headers: { 'x-api-key': '{readerKey}' },
    json: goodWebhook,
    missingPermissions: ['webhook:manage'],
    ...missingPermission,
  },
  {
    title: 'deleting without webhook:manage',
    method: 'DELETE',
    path: WEBHOOK,
    headers: { 'x-api-key': '{readerKey}' },
    missingPermissions: ['webhook:manage'],
    ...missingPermission,
  },
  {
    title: 'publishing without event:publish',
    path: EVENTS,
    headers: { 'x-api-key': '{managerKey}' },
    json: goodEvent,
    missingPermissions: ['event:publish'],
    ...missingPermission,
  },
  {
    title: "reading an event without event:publish and the event key's permission",
    path: `${EVENTS}/{event}`,
    headers: { 'x-api-key': '{managerKey}' },
    missingPermissions: ['customer:read'],
    ...missingPermission,
  },
  {
    title: 'subscribing to event keys whose permission the member lacks, naming each once',
    headers: { 'x-api-key': '{managerKey}' },
    json: {
      ...goodWebhook,
      subscribedEventKeys: ['customer:created', 'invoice:paid', 'customer:updated', 'call:created'],
    },
    missingPermissions: ['customer:read', 'call:read'],
    ...missingPermission,
  },
  {
    title: '* without full access',
    headers: { 'x-api-key': '{managerKey}' },
    json: { ...goodWebhook, subscribedEventKeys: ['*'] },
    missingPermissions: ['fullAccess'],
    ...missingPermission,
  },
]

describeBadInput('a key that is not valid', badKeys, (world) => {
  for (const [state, change] of [
    ['revoked', 'revoked_at = now()'],
    ['expired', "expires_at = now() - interval '1 second'"],
  ] as const) {
    it(`answers a key that was ${state} like one that never existed`, async () => {
      const { database, names } = world()
      await database.dataSource.query(
        `UPDATE api_key SET ${change} WHERE organisation_id = $1
           AND member_id IN (SELECT id FROM member WHERE permissions = $2 AND NOT full_access)`,
        [names['org'], state === 'revoked' ? ['webhook:read'] : []],
      )
      const headers = { 'x-api-key': state === 'revoked' ? '{readerKey}' : '{nobodyKey}' }
      await expectSameAnswer(world(), { headers }, { headers: { 'x-api-key': null } }, 401)
    })
  }

  it('answers every reason with the same words', async () => {
    const answers = await Promise.all(
      badKeys.filter(({ path }) => path === undefined).map((input) => world().send(input)),
    )
    expect(new Set(answers.map((answer) => answer.text)).size).to.equal(1)
  })
})

describeBadInput('what belongs to somebody else', foreign, (world) => {
  for (const [what, path] of [
    [
      'an organisation',
      (name: string) => `/api/orgs/${name === 'other' ? '{otherOrg}' : '{unknown}'}/webhooks`,
    ],
    ['a webhook', (name: string) => `${WEBHOOKS}/${name === 'other' ? '{otherWebhook}' : '{unknown}'}`],
    ['an event', (name: string) => `${EVENTS}/${name === 'other' ? '{otherEvent}' : '{unknown}'}`],
  ] as const) {
    it(`answers ${what} of others like one that does not exist`, async () => {
      await expectSameAnswer(world(), { path: path('other') }, { path: path('unknown') }, 404)
    })
  }

  it('leaves the webhook of the other organisation as it was', async () => {
    const { database, names } = world()
    const [row] = await database.dataSource.query<object[]>(
      'SELECT enabled, deleted_at FROM webhook WHERE id = $1',
      [names['otherWebhook']],
    )
    expect(row).to.deep.equal({ enabled: true, deleted_at: null })
  })
})

describeBadInput('a permission that is missing', lacking)

type Input = Parameters<World['send']>[0]

async function expectSameAnswer(world: World, one: Input, other: Input, status: number): Promise<void> {
  const [first, second] = await Promise.all([world.send(one), world.send(other)])
  expect(first.status).to.equal(status)
  expect([first.status, first.text]).to.deep.equal([second.status, second.text])
}

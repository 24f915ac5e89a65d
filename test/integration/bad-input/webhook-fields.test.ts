import { describeBadInput, goodWebhook, WEBHOOK, type BadInput } from '../../helpers/api/bad-input.ts'

const invalid = { status: 422, code: 'invalid_fields' }

const url = (title: string, value: unknown): BadInput => ({
  title: `the URL ${title}`,
  json: { ...goodWebhook, url: value },
  pointers: ['/url'],
  ...invalid,
})

/** One of each kind; `test/unit/outbound/url-rules.test.ts` has every rule. */
const urls: BadInput[] = [
  url('of plain http', 'http://receiver.example.com/'),
  url('that is empty', ''),
  url('with NUL', 'https://receiver.example.com/\u0000'),
  url('of a loopback address in disguise', 'https://0x7f.1/'),
  url('of an internal name', 'https://db.internal/'),
  url('on the port of another service', 'https://receiver.example.com:22/'),
]

const keys = (title: string, value: unknown, ...pointers: string[]): BadInput => ({
  title,
  json: { ...goodWebhook, subscribedEventKeys: value },
  pointers: pointers.map((pointer) => `/subscribedEventKeys${pointer}`),
  ...invalid,
})

const subscriptions: BadInput[] = [
  keys('an unknown event key', ['invoice:paid', 'invoice:eaten'], '/1'),
  keys('an event key in other case', ['Invoice:Paid'], '/0'),
  keys('an event key with white space', [' invoice:paid'], '/0'),
  keys('an event key with NUL', ['invoice:paid\u0000'], '/0'),
  keys('a pattern', ['invoice:*'], '/0'),
  keys('the name of an inherited property', ['constructor', '__proto__'], '/0', '/1'),
  keys('* among other keys', ['*', 'invoice:paid'], '/0'),
  keys('* after other keys', ['invoice:paid', '*'], '/1'),
  keys('* twice', ['*', '*'], '/1', '/0'),
  keys('one key twice', ['invoice:paid', 'customer:created', 'invoice:paid'], '/2'),
  keys('organizationSettings:updated by name', ['organizationSettings:updated'], '/0'),
  keys('keys that are no strings', [1, null, {}], '/0', '/1', '/2'),
  keys('several bad keys, naming each', ['x', 'invoice:paid', 'y'], '/0', '/2'),
]

const bodies: BadInput[] = [
  {
    title: 'a description with a control character',
    json: { ...goodWebhook, description: 'a\nb' },
    pointers: ['/description'],
    ...invalid,
  },
  {
    title: 'a description with half a character',
    json: { ...goodWebhook, description: 'a\ud800' },
    pointers: ['/description'],
    ...invalid,
  },
  ...['\u061c', '\u200e', '\u200f', '\u202a', '\u202e', '\u2066', '\u2069'].map((character): BadInput => {
    const point = character.charCodeAt(0).toString(16)
    return {
      title: `a description with the character ${point}, which reorders others`,
      json: { ...goodWebhook, description: `gepj.${character}exe` },
      pointers: ['/description'],
      ...invalid,
    }
  }),
  {
    title: 'fields that are ours to set',
    json: { ...goodWebhook, id: 'x', secret: 'x', createdAt: 'x', organisationId: 'x' },
    pointers: ['/id', '/secret', '/createdAt', '/organisationId'],
    ...invalid,
  },
  {
    title: '__proto__ and constructor',
    body: `{"__proto__":{"enabled":true},"constructor":{},${JSON.stringify(goodWebhook).slice(1)}`,
    pointers: ['/__proto__', '/constructor'],
    ...invalid,
  },
  {
    title: 'several faults of every kind, naming each field',
    json: { url: 'http://receiver.example.com/', subscribedEventKeys: ['nope'], enabled: null, extra: 1 },
    pointers: ['/url', '/subscribedEventKeys/0', '/enabled', '/extra'],
    ...invalid,
  },
]

const patch = (title: string, json: unknown, ...pointers: string[]): BadInput => ({
  title: `a change: ${title}`,
  method: 'PATCH',
  path: WEBHOOK,
  json,
  pointers,
  ...invalid,
})

const patches: BadInput[] = [
  patch('a bad URL', { url: 'http://receiver.example.com/' }, '/url'),
  patch('an unknown event key', { subscribedEventKeys: ['nope'] }, '/subscribedEventKeys/0'),
  patch('* among others', { subscribedEventKeys: ['invoice:paid', '*'] }, '/subscribedEventKeys/1'),
  patch('a new id and secret', { id: 'x', signingSecret: 'x', enabled: true }, '/id', '/signingSecret'),
]

const replay = (title: string, json: unknown, ...pointers: string[]): BadInput => ({
  title: `a replay ${title}`,
  path: `${WEBHOOK}/replays`,
  json,
  pointers,
  ...invalid,
})

const SINCE = '2026-01-01T00:00:00.000Z'

const replays: BadInput[] = [
  replay('from the future', { since: '2100-01-01T00:00:00.000Z' }, '/since'),
  replay('from no time', { since: 'yesterday' }, '/since'),
  replay('to before its start', { since: SINCE, until: '2025-01-01T00:00:00.000Z' }, '/until'),
  replay('to its start', { since: SINCE, until: SINCE }, '/until'),
  replay('of an unknown key', { since: SINCE, eventKeys: ['invoice:paid', 'invoice:eaten'] }, '/eventKeys/1'),
  replay('of *', { since: SINCE, eventKeys: ['*'] }, '/eventKeys/0'),
]

const ownKey = (title: string, json: unknown, ...pointers: string[]): BadInput => ({
  title: `a member's own key ${title}`,
  path: '/api/orgs/{org}/api-keys',
  json,
  pointers,
  ...invalid,
})

const ownKeys: BadInput[] = [
  ownKey('with a line break in its name', { name: 'a\nb' }, '/name'),
  ownKey('that ends in the past', { name: 'ci', expiresAt: '2020-01-01T00:00:00Z' }, '/expiresAt'),
]

/** What a schema alone refuses is tried by `schemas.test.ts`, at every field of every body. */
describeBadInput('fields of webhooks, replays and own keys that cannot be accepted', [
  ...urls,
  ...subscriptions,
  ...bodies,
  ...patches,
  ...replays,
  ...ownKeys,
])

import { describeBadInput, goodWebhook, WEBHOOK, type BadInput } from '../../helpers/api/bad-input.ts'

const invalid = { status: 422, code: 'invalid_fields' }

const url = (title: string, value: unknown): BadInput => ({
  title: `the URL ${title}`,
  json: { ...goodWebhook, url: value },
  pointers: ['/url'],
  ...invalid,
})

const urls: BadInput[] = [
  url('of plain http', 'http://receiver.example.com/'),
  url('of another scheme', 'ftp://receiver.example.com/'),
  url('without a scheme', 'receiver.example.com/hook'),
  url('that is relative', '/hook'),
  url('that is empty', ''),
  url('with no host', 'https:///hook'),
  url('with one slash', 'https:/receiver.example.com'),
  url('with a name and password', 'https://user:secret@receiver.example.com/'),
  url('with a fragment', 'https://receiver.example.com/#top'),
  url('with white space', ' https://receiver.example.com/'),
  url('with a line break', 'https://receiver.example.com/\nx'),
  url('with a backslash', 'https:\\\\receiver.example.com\\'),
  url('with NUL', 'https://receiver.example.com/\u0000'),
  url('of this machine', 'https://localhost/'),
  url('of a loopback address', 'https://127.0.0.1/'),
  url('of a loopback address in disguise', 'https://0x7f.1/'),
  url('of a loopback address of version 6', 'https://[::1]/'),
  url('of a private network', 'https://10.0.0.8/'),
  url('of cloud metadata', 'https://169.254.169.254/latest/meta-data'),
  url('of an internal name', 'https://db.internal/'),
  url('of a name without a dot', 'https://intranet/'),
  url('on the port of another service', 'https://receiver.example.com:22/'),
  url('with a port that is none', 'https://receiver.example.com:99999/'),
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
  title,
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

describeBadInput('a webhook URL that cannot be accepted', urls)
describeBadInput('a subscription that cannot be accepted', subscriptions)
describeBadInput('fields of a webhook that cannot be accepted', bodies)
describeBadInput('a change of a webhook that cannot be accepted', patches)

import { createECDH } from 'node:crypto'
import { describeBadInput, type BadInput } from '../../helpers/api/bad-input.ts'

const PATH = '/api/orgs/{org}/push-subscriptions'
const invalid = { status: 422, code: 'invalid_fields' }

const point = createECDH('prime256v1').generateKeys()
const p256dh = point.toString('base64url')
const auth = Buffer.alloc(16, 7).toString('base64url')
const good = { endpoint: 'https://push.example.com/send/abc', expirationTime: null, keys: { p256dh, auth } }

const endpoint = (title: string, value: unknown): BadInput => ({
  title: `the endpoint ${title}`,
  path: PATH,
  json: { ...good, endpoint: value },
  pointers: ['/endpoint'],
  ...invalid,
})

const endpoints: BadInput[] = [
  endpoint('of plain http', 'http://push.example.com/'),
  endpoint('of cloud metadata', 'https://169.254.169.254/latest/meta-data'),
  endpoint('with NUL', 'https://push.example.com/\u0000'),
  endpoint('that grows too long when it is written plainly', `https://push.example.com/${'é'.repeat(1000)}`),
]

const key = (name: 'p256dh' | 'auth', title: string, value: unknown): BadInput => ({
  title: `${name} ${title}`,
  path: PATH,
  json: { ...good, keys: { ...good.keys, [name]: value } },
  pointers: [`/keys/${name}`],
  ...invalid,
})

const text = (...bytes: Uint8Array[]): string => Buffer.concat(bytes).toString('base64url')
const [mark, hybrid] = [Buffer.of(4), Buffer.of(6 + (point[64]! % 2))]
const offCurve = Buffer.from(point)
offCurve[64]! ^= 1

const publicKeys: BadInput[] = [
  key('p256dh', 'of a point that is not on the curve', text(offCurve)),
  key('p256dh', 'of nothing but zeros', text(mark, Buffer.alloc(64))),
  key('p256dh', 'with coordinates beyond the field', text(mark, Buffer.alloc(64, 0xff))),
  key('p256dh', 'of a compressed point', text(Buffer.of(2), point.subarray(1, 33))),
  key('p256dh', 'of a hybrid point', text(hybrid, point.subarray(1))),
  key('p256dh', 'without its first byte', text(point.subarray(1))),
  key('p256dh', 'with a byte too few', text(point.subarray(0, 64))),
  key('p256dh', 'with a byte too many', text(point, Buffer.of(0))),
  key('p256dh', 'of the point at infinity', text(Buffer.of(0))),
  key('p256dh', 'with white space', `${p256dh.slice(0, 40)}\n${p256dh.slice(40)}`),
  key('p256dh', 'with NUL', `${p256dh.slice(0, 86)}\u0000`),
  key('p256dh', 'with a lone surrogate', `${p256dh.slice(0, 86)}\udc00`),
  key('p256dh', 'in base64 with other characters', `+/${p256dh.slice(2)}`),
  key('p256dh', 'with padding in the middle', `${p256dh.slice(0, 43)}=${p256dh.slice(44)}`),
  key('p256dh', 'that is empty', ''),
]

const secrets: BadInput[] = [
  key('auth', 'with a byte too few', text(Buffer.alloc(15))),
  key('auth', 'with a byte too many', text(Buffer.alloc(17))),
  key('auth', 'with too much padding', `${auth}===`),
  key('auth', 'with too little padding', `${auth}=`),
  key('auth', 'whose last character says more than it may', `${auth.slice(0, -1)}z`),
  key('auth', 'in base64 with other characters', `+/${auth.slice(2)}`),
  key('auth', 'with NUL', `\u0000${auth.slice(1)}`),
  key('auth', 'that is empty', ''),
]

const body = (title: string, json: unknown, ...pointers: string[]): BadInput => ({
  title,
  path: PATH,
  json,
  pointers,
  ...invalid,
})

const bodies: BadInput[] = [
  body(
    'several faults of every kind, naming each field',
    {
      endpoint: 'http://push.example.com/',
      expirationTime: true,
      keys: { p256dh: 'x', auth: 'x', extra: 1 },
      extra: 1,
    },
    ...['/endpoint', '/expirationTime', '/keys/p256dh', '/keys/auth', '/keys/extra', '/extra'],
  ),
  {
    title: 'an expiration that no number can hold',
    path: PATH,
    body: JSON.stringify(good).replace('null', '1e999'),
    pointers: ['/expirationTime'],
    ...invalid,
  },
  {
    title: '__proto__ instead of the fields',
    path: PATH,
    body: `{"__proto__":${JSON.stringify(good)}}`,
    pointers: ['/__proto__', '/endpoint', '/keys'],
    ...invalid,
  },
]

describeBadInput('a push subscription that cannot be accepted', [
  ...endpoints,
  ...publicKeys,
  ...secrets,
  ...bodies,
])

import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import {
  describeBadInput,
  EVENTS,
  goodEvent,
  goodWebhook,
  WEBHOOKS,
  type BadInput,
} from '../../helpers/api/bad-input.ts'

const KIB = 1024
const unsupported = { status: 415, code: 'unsupported_media_type' }
const malformed = { status: 400, code: 'malformed_json' }
const tooLarge = { status: 413, code: 'body_too_large' }
const good = JSON.stringify(goodWebhook)

const withHeader = (title: string, name: string, value: string | null): BadInput => ({
  title,
  body: good,
  headers: { [name]: value },
  ...unsupported,
})

const types: BadInput[] = [
  withHeader('a body without content type', 'content-type', null),
  withHeader('a form', 'content-type', 'application/x-www-form-urlencoded'),
  withHeader('application/merge-patch+json', 'content-type', 'application/merge-patch+json'),
  withHeader('JSON in UTF-16', 'content-type', 'application/json; charset=utf-16'),
  withHeader('an unknown content encoding', 'content-encoding', 'zstd'),
  withHeader('two content encodings', 'content-encoding', 'gzip, gzip'),
  { title: 'neither body nor content type', method: 'POST', ...unsupported },
]

const texts: BadInput[] = [
  { title: 'no body at all', method: 'POST', headers: { 'content-type': 'application/json' }, ...malformed },
  ...['', '{', '{} {}', 'NaN', '\u00a0{}'].map((body) => ({
    title: `the text ${JSON.stringify(body)}`,
    body,
    ...malformed,
  })),
  { title: 'bytes that are not UTF-8', body: Buffer.from([0x22, 0xff, 0xfe, 0x22]), ...malformed },
  { title: 'UTF-8 that is cut in a character', body: Buffer.from('"é').subarray(0, 2), ...malformed },
  {
    title: 'arrays in arrays, 20 000 deep',
    body: '['.repeat(20_000) + ']'.repeat(20_000),
    status: 400,
    code: 'too_deep',
  },
  {
    title: 'objects in objects, 66 deep',
    path: EVENTS,
    body: `{"event":"comment:created","data":${'{"a":'.repeat(64)}1${'}'.repeat(64)}}`,
    status: 400,
    code: 'too_deep',
  },
  {
    title: 'gzip that is cut off',
    body: gzipSync(good).subarray(0, -10),
    headers: { 'content-encoding': 'gzip' },
    status: 400,
    code: 'incomplete_body',
  },
]

const bomb = Buffer.alloc(20 * KIB * KIB, ' ')
const sizes: BadInput[] = [
  { title: 'a webhook of 64 KiB and a byte', body: padded(good, 64 * KIB + 1), ...tooLarge },
  { title: 'an event of 256 KiB and a byte', path: EVENTS, body: eventOf(256 * KIB + 1), ...tooLarge },
  {
    title: 'a push subscription of 16 KiB and a byte',
    path: '/api/orgs/{org}/push-subscriptions',
    body: padded('{}', 16 * KIB + 1),
    ...tooLarge,
  },
  {
    title: 'an event that announces no length',
    path: EVENTS,
    body: eventOf(256 * KIB + 1),
    headers: { 'content-length': [], 'transfer-encoding': 'chunked' },
    ...tooLarge,
  },
  { title: 'a gzip bomb', body: gzipSync(bomb), headers: { 'content-encoding': 'gzip' }, ...tooLarge },
  {
    title: 'a Brotli bomb',
    body: brotliCompressSync(bomb),
    headers: { 'content-encoding': 'br' },
    ...tooLarge,
  },
]

const headers: BadInput[] = [
  'a b',
  'a,b',
  '',
  '""',
  '"a',
  'é',
  'a'.repeat(256),
  ['a', 'b'],
  ['a', 'a'],
].flatMap((key) =>
  [WEBHOOKS, EVENTS].map((path) => ({
    title: `the Idempotency-Key ${JSON.stringify(key).slice(0, 20)} on ${path.split('/').at(-1) ?? ''}`,
    path,
    json: path === EVENTS ? goodEvent : goodWebhook,
    headers: { 'idempotency-key': key },
    status: 400,
    code: 'invalid_idempotency_key',
  })),
)

describeBadInput('a body of another content type', types)
describeBadInput('a body that is not JSON in UTF-8', texts)
describeBadInput('a body that is too large', sizes, (world) => {
  it('accepts a webhook of exactly 64 KiB', async () => {
    expect((await world().send({ body: padded(good, 64 * KIB) })).status).to.equal(201)
  })

  it('accepts an event of exactly 256 KiB', async () => {
    const answer = await world().send({ path: EVENTS, body: eventOf(256 * KIB) })
    expect(answer.status, answer.text).to.equal(202)
  })

  for (const [encoding, body] of [
    ['gzip', gzipSync(good)],
    ['GZip', gzipSync(good)],
    ['deflate', deflateSync(good)],
    ['br', brotliCompressSync(good)],
    ['identity', Buffer.from(good)],
  ] as const) {
    it(`accepts a body compressed with ${encoding}`, async () => {
      const answer = await world().send({ body, headers: { 'content-encoding': encoding } })
      expect(answer.status, answer.text).to.equal(201)
    })
  }

  it('accepts JSON that names its charset, and a byte order mark', async () => {
    const type = { 'content-type': 'Application/JSON; charset="UTF-8"' }
    expect((await world().send({ body: `\ufeff${good}`, headers: type })).status).to.equal(201)
  })

  it('accepts data nested 62 levels deep', async () => {
    const data = `${'{"a":'.repeat(62)}1${'}'.repeat(62)}`
    const answer = await world().send({ path: EVENTS, body: `{"event":"comment:created","data":${data}}` })
    expect(answer.status, answer.text).to.equal(202)
  })
})
describeBadInput('an Idempotency-Key that cannot be used', headers)

/** White space is as good a filler as any. */
function padded(json: string, bytes: number): string {
  return json + ' '.repeat(bytes - json.length)
}

/** An event that is large in itself. */
function eventOf(bytes: number): string {
  const [head, tail] = ['{"event":"comment:created","data":{"text":"', '"}}']
  return `${head}${'x'.repeat(bytes - head.length - tail.length)}${tail}`
}

import { readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { STORED_HEADERS, type CapturedResponse } from '../../../src/outbound/exchange.ts'
import { answer, createTestClient, drip, startReceiver } from './receivers.ts'

const TIMEOUT_MS = 20_000
const HEAD = 'HTTP/1.1 500 Oops\r\n'

async function capture(raw: string | Buffer, maxResponseBytes = 32_768): Promise<CapturedResponse> {
  const receiver = await startReceiver(answer(raw))
  const client = createTestClient({ maxResponseBytes })
  const url = `http://127.0.0.1:${receiver.port}/`
  const { response } = await client.post({ url, headers: {}, body: Buffer.from('{}') })
  await receiver.stop()
  return response!
}

describe('the stored part of an answer', () => {
  it('is the whole body when it fits to the byte', async () => {
    const body = 'x'.repeat(1000)
    expect(await capture(`${HEAD}\r\n${body}`, 1000)).to.deep.equal({ headers: {}, body, truncated: false })
  })

  it('is the beginning of a larger body, however large it is announced', async () => {
    const { body, truncated } = await capture(
      `${HEAD}content-length: 99999999999\r\n\r\n${'x'.repeat(1001)}`,
      1000,
    )
    expect({ length: body.length, truncated }).to.deep.equal({ length: 1000, truncated: true })
  })

  it('is read up to its bound, so that an endless answer costs no time', async () => {
    const receiver = await startReceiver(drip('HTTP/1.1 500 Oops\r\n\r\n', 'x'.repeat(600)))
    const client = createTestClient({ maxResponseBytes: 1000, timeoutMs: TIMEOUT_MS })
    const url = `http://127.0.0.1:${receiver.port}/`
    const { durationMs, response } = await client.post({ url, headers: {}, body: Buffer.from('{}') })
    await receiver.stop()
    expect(response).to.include({ body: 'x'.repeat(1000), truncated: true })
    // Well before its deadline.
    expect(durationMs).to.be.below(TIMEOUT_MS / 2)
  })

  it('contains no NUL and nothing that is not Unicode', async () => {
    const bytes = Buffer.concat([
      Buffer.from(`${HEAD}\r\na\u0000b`),
      Buffer.from([0xff, 0xfe, 0xed, 0xa0, 0x80, 0xf0]),
    ])
    const { body } = await capture(bytes)
    expect(body).to.match(/^a\ufffdb\ufffd+$/)
    expect(Buffer.from(body).toString()).to.equal(body)
  })

  it('contains no control characters but tab and line ends, and none that change the direction of text', async () => {
    const { body, headers } = await capture(
      `${HEAD}server: a\u202eb\u009bc\r\n\r\n\ttext\r\n\u001b[2Jred\u007f\u0085\u009b\u202e\u2066.\u05d0\u200f`,
    )
    expect(body).to.equal('\ttext\r\n\ufffd[2Jred\ufffd\ufffd\ufffd\ufffd\ufffd.\u05d0\u200f')
    // Headers are read byte by byte.
    expect(headers['server']).to.equal('aâ\ufffd®bÂ\ufffdc')
  })

  it('contains no half of a character, neither of a truncated body nor of a lone surrogate', async () => {
    const { body } = await capture(`${HEAD}\r\n${'😀'.repeat(3)}`, 6)
    expect(body).to.equal('😀\ufffd')
    const json = await capture(`${HEAD}\r\n{"a":"\\ud800"}`)
    expect(json.body).to.equal('{"a":"\\ud800"}')
  })

  it('is the body as sent, not decompressed', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000))
    const head = Buffer.from(`${HEAD}content-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`)
    expect((await capture(Buffer.concat([head, bomb]))).body.length).to.be.at.most(32_768)
  })

  it('has lower-case header names, and repeated ones joined', async () => {
    const { headers } = await capture(`${HEAD}Via: 1\r\nvia: 2\r\nRetry-After: 120\r\n\r\n`)
    expect(headers).to.deep.equal({ via: '1, 2', 'retry-after': '120' })
  })

  it('has the values of harmless headers only, and the names of all others', async () => {
    const names = [
      'Set-Cookie',
      'set-cookie2',
      'Authorization',
      'Proxy-Authorization',
      'WWW-Authenticate',
      'Authentication-Info',
      'Location',
      'Link',
      'X-Amz-Security-Token',
      'X-Api-Key',
      'X-Never-Heard-Of',
    ]
    const lines = names.map((name) => `${name}: secret`).join('\r\n')
    const { headers } = await capture(
      `${HEAD}Content-Type: text/plain\r\nX-Request-Id: 7\r\n${lines}\r\n\r\n`,
    )
    expect(headers).to.deep.equal({
      'content-type': 'text/plain',
      'x-request-id': '7',
      ...Object.fromEntries(names.map((name) => [name.toLowerCase(), '[redacted]'])),
    })
  })

  it('has its harmless headers listed in docs/api.md', async () => {
    const api = await readFile(new URL('../../../docs/api.md', import.meta.url), 'utf8')
    const listed = /Of an answer's headers the values of these are kept:(.*?)\./s.exec(api)?.[1] ?? ''
    const names = [...listed.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)
    expect(names).to.deep.equal([...STORED_HEADERS])
  })

  it('has 16 KiB of headers in JSON at most, however many there are', async () => {
    const names = Array.from({ length: 3_000 }, (_, index) => index.toString(36))
    const { headers } = await capture(`${HEAD}${names.map((name) => `${name}:\r\n`).join('')}\r\n`)
    const size = JSON.stringify(headers).length
    expect(size).to.be.within(15_000, 16 * 1024)
  })

  it('survives headers named like parts of an object', async () => {
    const { headers } = await capture(`${HEAD}__proto__: a\r\nconstructor: b\r\ncontent-length: 0\r\n\r\n`)
    expect(Object.entries(headers))
      .to.deep.include(['__proto__', '[redacted]'])
      .and.to.deep.include(['constructor', '[redacted]'])
    expect(Object.getPrototypeOf(headers)).to.equal(Object.prototype)
  })
})

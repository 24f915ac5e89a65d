import { connect } from 'node:net'
import { expect } from 'chai'
import { useApi } from '../../helpers/api/api.ts'
import { eventually } from '../../helpers/eventually.ts'
import { parseAnswer, sendBytes } from '../../helpers/api/raw-request.ts'

const HEALTHZ = 'GET /healthz HTTP/1.1\r\nHost: x\r\n'
const POST = 'POST /api/orgs/org_none/events HTTP/1.1\r\nHost: x\r\n'

/** What arrives, and the answer. */
const UNREADABLE: readonly [title: string, bytes: string, status: number, code: string][] = [
  ['a method that does not exist', 'EAT /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'malformed_request'],
  ['a path in Latin 1', 'GET /h\u00e9 HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'malformed_request'],
  ['no HTTP at all', '\u0016\u0003\u0001\u0002\r\n\r\n', 400, 'malformed_request'],
  ['no Host header', 'GET /healthz HTTP/1.1\r\n\r\n', 400, 'malformed_request'],
  ['two lengths', `${POST}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, 400, 'malformed_request'],
  [
    'a length and chunks',
    `${POST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    400,
    'malformed_request',
  ],
  ['a chunk that is none', `${POST}Transfer-Encoding: chunked\r\n\r\nno chunk\r\n`, 400, 'incomplete_body'],
  ['headers of 20 kB', `${HEALTHZ}x-big: ${'a'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
  ['headers of a megabyte', `${HEALTHZ}x-big: ${'a'.repeat(1_000_000)}\r\n\r\n`, 431, 'headers_too_large'],
]

describe('what cannot be read as a request', () => {
  const suite = useApi()

  for (const [title, bytes, status, code] of UNREADABLE)
    it(`is answered with a problem document, and the connection closed: ${title}`, async () => {
      const { head, body } = parseAnswer(await sendBytes(suite.api.url, bytes))
      expect(head).to.match(new RegExp(`^HTTP/1\\.1 ${status} `))
      expect(head)
        .to.match(/\r\ncontent-type: application\/problem\+json/i)
        .and.match(/\r\nconnection: close/i)
      expect(head).to.include(`\r\ncontent-length: ${Buffer.byteLength(body)}`)
      expect(JSON.parse(body)).to.deep.include({ status, code, type: `urn:posthorn:problem:${code}` })
      expect((await suite.api.call('GET', '/healthz')).status).to.equal(200)
    })

  it('gets no answer while a request before it has none', async () => {
    const answer = await sendBytes(suite.api.url, `${HEALTHZ}\r\nno HTTP at all\r\n\r\n`)
    expect(answer).not.to.include('malformed_request')
  })

  it('gets no second answer where its request was answered before its body came', async () => {
    const { hostname, port } = new URL(suite.api.url)
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString()))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => undefined)
    socket.write(`${POST}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`)
    await eventually(() => expect(text).to.include('unauthenticated'))
    socket.write('no chunk\r\n')
    await closed
    expect(text.match(/HTTP\/1\.1/g)).to.deep.equal(['HTTP/1.1'])
  })

  it('is read no longer where its sender neither reads nor closes', async () => {
    const { hostname, port } = new URL(suite.api.url)
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    const failed = new Promise((resolve) => socket.once('error', resolve))
    socket.write('no HTTP at all\r\n\r\n')
    const sending = setInterval(() => socket.write('more'), 100)
    try {
      expect(await failed)
        .to.have.property('code')
        .that.matches(/^(ECONNRESET|EPIPE)$/)
    } finally {
      clearInterval(sending)
      socket.destroy()
    }
  })

  it('does not include an expectation that is unknown', async () => {
    const answer = await sendBytes(suite.api.url, `${HEALTHZ}Expect: applause\r\nConnection: close\r\n\r\n`)
    expect(answer).to.match(/^HTTP\/1\.1 200 /)
  })
})

import { once } from 'node:events'
import * as net from 'node:net'
import * as tls from 'node:tls'
import { expect } from 'chai'
import { eventually } from '../../helpers/eventually.ts'
import { createCertificate, type Certificate } from '../../helpers/receivers/receiver.ts'
import { createTestClient, answer, OK, startReceiver } from './receivers.ts'
import type { HttpClientOptions, PostResult } from '../../../src/outbound/http-client.ts'

const DAY_MS = 86_400_000

describe('HttpClient.post over TLS', () => {
  let trusted: Certificate

  before(async () => {
    trusted = await createCertificate()
  })

  async function postTo(
    server: tls.TlsOptions,
    options: Partial<HttpClientOptions> = { ca: trusted.cert },
    host = 'localhost',
  ): Promise<PostResult & { hits: number }> {
    const receiver = await startReceiver(answer(OK), server)
    const client = createTestClient({ allowHttp: false, ...options })
    const url = `https://${host}:${receiver.port}/`
    const result = await client.post({ url, headers: {}, body: Buffer.from('{}') })
    await receiver.stop()
    return { ...result, hits: receiver.received.length }
  }

  function expectTlsError(result: PostResult & { hits: number }, error: string): void {
    expect(result).to.include({ failureCode: 'tls_error', error, statusCode: null, response: null, hits: 0 })
  }

  it('delivers to an endpoint whose certificate is trusted, with TLS 1.2 and 1.3', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const result = await postTo({ ...trusted, minVersion: version, maxVersion: version })
      expect(result).to.include({ succeeded: true, hits: 1 })
    }
  })

  it('sends the host name as SNI, without a trailing dot', async () => {
    const names: (string | false | null)[] = []
    const server = {
      ...trusted,
      SNICallback: (name: string, done: (error: null) => void) => done((names.push(name), null)),
    }
    expect(await postTo(server, undefined, 'localhost.')).to.include({ succeeded: true })
    expect(names).to.deep.equal(['localhost'])
  })

  it('refuses a certificate that neither the usual roots nor the extra one sign', async () => {
    const { cert } = await createCertificate({ name: 'other.eu' })
    expectTlsError(await postTo(trusted, { ca: cert }), "The endpoint's certificate is self-signed.")
  })

  it('refuses a self-signed certificate, also when the environment says not to', async () => {
    expectTlsError(await postTo(trusted, {}), "The endpoint's certificate is self-signed.")
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    const result = await postTo(trusted, {})
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    expectTlsError(result, "The endpoint's certificate is self-signed.")
  })

  it('refuses a certificate that has expired or is not valid yet', async () => {
    const now = Date.now()
    const old = await createCertificate({
      notBeforeDate: new Date(now - 9 * DAY_MS),
      notAfterDate: new Date(now - DAY_MS),
    })
    const early = await createCertificate({
      notBeforeDate: new Date(now + DAY_MS),
      notAfterDate: new Date(now + 9 * DAY_MS),
    })
    expectTlsError(await postTo(old, { ca: old.cert }), "The endpoint's certificate has expired.")
    expectTlsError(await postTo(early, { ca: early.cert }), "The endpoint's certificate is not valid yet.")
  })

  it('refuses a certificate for another host', async () => {
    const other = await createCertificate({ name: 'other.eu' })
    const error = "The endpoint's certificate is for another host name."
    expectTlsError(await postTo(other, { ca: other.cert }), error)
    expectTlsError(await postTo(trusted, undefined, '127.0.0.1'), error)
  })

  it('refuses a certificate for every name of a top-level domain', async () => {
    const wide = await createCertificate({ altName: '*.localhost' })
    const error = "The endpoint's certificate is for another host name."
    expectTlsError(await postTo(wide, { ca: wide.cert }, 'a.localhost'), error)
  })

  it('accepts a certificate without alternative names, where the authority is trusted', async () => {
    const odd = await createCertificate({ altName: null })
    expect(await postTo(odd, { ca: odd.cert })).to.include({ succeeded: true, hits: 1 })
  })

  it('fails where the endpoint does not know the name it is called by', async () => {
    const refuse = (_name: string, done: (error: Error) => void) => done(new Error('unknown'))
    const result = await postTo({ ...trusted, SNICallback: refuse })
    expect(result).to.include({ failureCode: 'connection_reset', response: null, hits: 0 })
  })

  it('fails where the endpoint asks for a certificate of ours', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const server = { ...trusted, minVersion: version, maxVersion: version, requestCert: true }
      const result = await postTo(server)
      expect(result, version).to.include({ succeeded: false, response: null, hits: 0 })
      expect(result.failureCode, version).to.be.oneOf(['tls_error', 'connection_reset'])
    }
  })

  it('refuses TLS 1.1', async () => {
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    expectTlsError(await postTo({ ...trusted, ...old }), 'The endpoint does not offer TLS 1.2 or newer.')
  })

  it('refuses an endpoint that speaks only HTTP/2', async () => {
    expectTlsError(
      await postTo({ ...trusted, ALPNProtocols: ['h2'] }),
      'The endpoint does not speak HTTP/1.1.',
    )
  })

  it('reports a port that speaks plain http', async () => {
    const receiver = await startReceiver((socket) => socket.end(OK))
    const raw = net
      .createServer((socket) => socket.on('error', () => undefined).end(OK))
      .listen(0, '127.0.0.1')
    await once(raw, 'listening')
    const url = `https://localhost:${(raw.address() as net.AddressInfo).port}/`
    const result = await createTestClient().post({ url, headers: {}, body: Buffer.from('{}') })
    raw.close()
    await receiver.stop()
    expectTlsError({ ...result, hits: 0 }, 'The endpoint does not speak TLS on this port.')
  })

  it('gives up on a missing handshake within the connect time-out', async () => {
    const mute = net.createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const url = `https://localhost:${(mute.address() as net.AddressInfo).port}/`
    const client = createTestClient({ connectTimeoutMs: 300 })
    const result = await client.post({ url, headers: {}, body: Buffer.from('{}') })
    mute.close()
    const error = 'No connection could be set up within 0.3 seconds.'
    expect(result).to.include({ failureCode: 'connect_timeout', error })
    expect(result.durationMs).to.be.at.least(298)
  })

  it('fails at once when what follows on an open connection is no TLS', async () => {
    let front: net.Socket | undefined
    const secure = tls.createServer(trusted, (socket) => {
      socket.on('error', () => undefined).once('data', () => front?.write(OK))
    })
    secure.listen(0, '127.0.0.1')
    await once(secure, 'listening')
    const relay = net.createServer((socket) => {
      front = socket.on('error', () => undefined)
      const back = net.connect((secure.address() as net.AddressInfo).port, '127.0.0.1')
      socket.pipe(back.on('error', () => undefined)).pipe(socket)
      socket.on('close', () => back.destroy())
    })
    relay.listen(0, '127.0.0.1')
    await once(relay, 'listening')
    const url = `https://localhost:${(relay.address() as net.AddressInfo).port}/`
    const client = createTestClient({ ca: trusted.cert })
    const result = await client.post({ url, headers: {}, body: Buffer.from('{}') })
    front?.destroy()
    relay.close()
    secure.close()
    expect(result).to.include({ failureCode: 'connection_reset', statusCode: null })
  })

  it('sends nothing after the deadline, when the endpoint finishes its handshake late', async () => {
    let requestBytes = 0
    const secure = tls.createServer(trusted, (socket) => {
      socket.on('error', () => undefined).on('data', (chunk: Buffer) => (requestBytes += chunk.length))
    })
    secure.on('tlsClientError', () => undefined)
    const held: net.Socket[] = []
    const front = net
      .createServer({ pauseOnConnect: true }, (socket) => held.push(socket))
      .listen(0, '127.0.0.1')
    await once(front, 'listening')
    const url = `https://localhost:${(front.address() as net.AddressInfo).port}/`
    const client = createTestClient({ timeoutMs: 1_000, connectTimeoutMs: 5000, ca: trusted.cert })
    const result = await client.post({ url, headers: {}, body: Buffer.from('{}') })
    expect(result).to.include({ failureCode: 'timeout', error: 'No answer within 1 second.' })
    expect(result.durationMs).to.be.at.least(998)

    const socket = await eventually(() => held.at(0) ?? expect.fail('nothing was accepted'))
    const closed = once(socket, 'close')
    secure.emit('connection', socket)
    socket.resume()
    await closed
    front.close()
    expect({ connections: held.length, requestBytes }).to.deep.equal({ connections: 1, requestBytes: 0 })
  })
})

import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect } from 'chai'
import webPush from 'web-push'
import type { SendOutcome } from '../../../../src/incidents/notifications/mail-text.ts'
import { createPusher } from '../../../../src/incidents/notifications/push.ts'
import { createHttpClient, type HttpClientOptions } from '../../../../src/outbound/http-client.ts'
import { USER_AGENT } from '../../../../src/outbound/signed-headers.ts'
import {
  type Certificate,
  createCertificate,
  createReceiver,
  type Receiver,
} from '../../../helpers/receivers/receiver.ts'
import { createPushBrowser, readVapid } from '../../../helpers/notifications/push-browser.ts'

const { privateKey, publicKey } = webPush.generateVAPIDKeys()
const SUBJECT = 'mailto:admin@example.com'
const INCIDENT_ID = '01933b2e-7a61-7c3f-9d4e-0123456789ab'
const MESSAGE = { title: 'Größe 😀', body: 'two\nlines', url: '/developer?webhook=1', tag: INCIDENT_ID }

describe('Pusher.send', () => {
  const browser = createPushBrowser()
  const open: { close(): Promise<void> }[] = []
  let certificate: Certificate

  before(async () => {
    certificate = await createCertificate()
  })

  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()))
  })

  async function start(...args: Parameters<typeof createReceiver>): Promise<Receiver> {
    const receiver = await createReceiver(...args)
    open.push(receiver)
    return receiver
  }

  function pushTo(
    endpoint: string,
    { keys = browser, message = MESSAGE, ...options }: PushOptions = {},
  ): Promise<SendOutcome> {
    const httpClient = createHttpClient({
      allowHttp: true,
      allowedCidrs: ['127.0.0.0/8'],
      timeoutMs: 10_000,
      connectTimeoutMs: 5_000,
      ca: certificate.cert,
      ...options,
    })
    open.push(httpClient)
    const { p256dh, auth } = keys
    const pusher = createPusher({ privateKey, subject: SUBJECT, httpClient })
    return pusher.send({ endpoint, p256dh, auth }, message, { topic: INCIDENT_ID })
  }

  type PushOptions = Partial<HttpClientOptions> & {
    keys?: { p256dh: string; auth: string }
    message?: object
  }

  it('sends what only the browser can read', async () => {
    const service = await start({ tls: certificate, answer: () => 201 })
    expect(await pushTo(service.url)).to.deep.equal({ state: 'sent' })
    expect(service.posts).to.have.lengthOf(1)
    const { body } = service.posts[0]!
    expect(JSON.parse(browser.decrypt(body))).to.deep.equal(MESSAGE)
    expect(() => createPushBrowser().decrypt(body)).to.throw()
  })

  it('states the sender, how long to keep the message, and which message it replaces', async () => {
    const service = await start({ tls: certificate, answer: () => 201 })
    await pushTo(service.url)
    const { headers, body, rawHeaders } = service.posts[0]!
    expect(headers).to.include({
      ttl: '86400',
      topic: INCIDENT_ID.replaceAll('-', ''),
      urgency: 'normal',
      'content-encoding': 'aes128gcm',
      'content-type': 'application/octet-stream',
      'content-length': String(body.length),
      'user-agent': USER_AGENT,
    })
    expect(rawHeaders.filter((name) => name.toLowerCase() === 'content-length')).to.have.lengthOf(1)
    const { key, claims } = readVapid(headers.authorization ?? '')
    expect(key).to.equal(publicKey)
    expect(claims).to.include({ aud: new URL(service.url).origin, sub: SUBJECT })
    expect(claims['exp']).to.be.within(Date.now() / 1000, Date.now() / 1000 + 86_400)
  })

  describe('an answer of', () => {
    const ANSWERS: readonly [status: number, outcome: SendOutcome][] = [
      [200, { state: 'sent' }],
      [201, { state: 'sent' }],
      [202, { state: 'sent' }],
      [307, { state: 'failed', error: 'the push service redirects (307)' }],
      [400, { state: 'failed', error: 'the push service refused the message (400)' }],
      [401, { state: 'refused', error: 'the push service refused the VAPID key or token (401)' }],
      [403, { state: 'refused', error: 'the push service refused the VAPID key or token (403)' }],
      [404, { state: 'failed', error: 'the browser is no longer subscribed (404)', isObsolete: true }],
      [410, { state: 'failed', error: 'the browser is no longer subscribed (410)', isObsolete: true }],
      [413, { state: 'failed', error: 'the message is too large for the push service (413)' }],
      [429, { state: 'refused', error: 'the push service asks for fewer messages (429)' }],
      [500, { state: 'unknown', error: 'the push service answered 500' }],
      [503, { state: 'unknown', error: 'the push service answered 503' }],
    ]
    for (const [status, outcome] of ANSWERS) {
      it(`${status} means ${outcome.state}, after one request`, async () => {
        const elsewhere = await start()
        const service = await start({
          answer: (_index, _post, response) => {
            response.writeHead(status, { location: elsewhere.url }).end()
            return null
          },
        })
        expect(await pushTo(service.url)).to.deep.equal(outcome)
        expect([service.posts.length, elsewhere.posts.length]).to.deep.equal([1, 0])
      })
    }
  })

  describe('without an answer', () => {
    it('may be retried when nothing listens', async () => {
      const service = await start()
      await service.close()
      expect(await pushTo(service.url)).to.deep.equal({
        state: 'refused',
        error: 'The connection was refused.',
      })
    })

    it('may be retried when the host cannot be found', async () => {
      expect(await pushTo('https://push.invalid/x')).to.have.property('state', 'refused')
    })

    it('may be retried when the certificate is not trusted', async () => {
      const service = await start({ tls: certificate })
      const { cert } = await createCertificate()
      expect(await pushTo(service.url, { ca: cert })).to.have.property('state', 'refused')
      expect(service.posts).to.deep.equal([])
    })

    it('may be retried when no connection is established in time', async () => {
      const sockets: Socket[] = []
      const mute = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1')
      await once(mute, 'listening')
      const { port } = mute.address() as AddressInfo
      const outcome = await pushTo(`https://localhost:${port}/`, { connectTimeoutMs: 100 })
      sockets.forEach((socket) => socket.destroy())
      mute.close()
      expect(outcome).to.have.property('state', 'refused')
    })

    it('is not retried once the message may have been read', async () => {
      const hangsUp = await start({ answer: (_index, _post, response) => (response.destroy(), null) })
      expect(await pushTo(hangsUp.url)).to.have.property('state', 'unknown')
      const saysNothing = await start({ answer: () => null })
      expect(await pushTo(saysNothing.url, { timeoutMs: 2_000 })).to.have.property('state', 'unknown')
      expect([hangsUp.posts.length, saysNothing.posts.length]).to.deep.equal([1, 1])
    })
  })

  it('does not reach addresses that are blocked for webhooks', async () => {
    const service = await start()
    expect(await pushTo(service.url, { allowedCidrs: [] })).to.have.property('state', 'failed')
    expect(await pushTo(service.url, { allowHttp: false })).to.have.property('state', 'failed')
    expect(service.posts).to.deep.equal([])
  })

  it('sends nothing for an invalid subscription', async () => {
    const service = await start()
    const { p256dh, auth } = browser
    const offTheCurve = Buffer.alloc(65, 4).toString('base64url')
    const bad = [
      { p256dh: '', auth },
      { p256dh: 'x', auth },
      { p256dh: offTheCurve, auth },
      { p256dh, auth: '' },
      { p256dh, auth: 'c2hvcnQ' },
    ]
    for (const keys of bad) {
      expect(await pushTo(service.url, { keys })).to.deep.equal({
        state: 'failed',
        error: 'the keys of the subscription are not valid',
      })
    }
    expect(await pushTo('not an address')).to.deep.equal({
      state: 'failed',
      error: 'the address of the push service is not valid',
    })
    expect(service.posts).to.deep.equal([])
  })
})

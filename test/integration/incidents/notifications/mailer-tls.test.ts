import { expect } from 'chai'
import { type Certificate, createCertificate } from '../../../helpers/receivers/receiver.ts'
import {
  createMailServer,
  createRudeMailServer,
  type MailServer,
} from '../../../helpers/notifications/mail-server.ts'
import { closeMailers, createTestMailer, mail } from './mailers.ts'

/** Ten of these limit the whole try, which has another error: the polite answers before the handshake are sooner. */
const HANDSHAKE_TIMEOUT_MS = 500

describe('Mailer.send over TLS', () => {
  const open: { close(): Promise<void> }[] = []
  let certificate: Certificate

  before(async () => {
    certificate = await createCertificate()
  })

  async function start(options: Parameters<typeof createMailServer>[0]): Promise<MailServer> {
    const server = await createMailServer(options)
    open.push(server)
    return server
  }

  afterEach(async () => {
    await closeMailers()
    await Promise.all(open.splice(0).map((server) => server.close()))
  })

  for (const tls of ['starttls', 'implicit'] as const) {
    describe(tls, () => {
      const auth = { user: 'posthorn', password: 'secret' }

      it('encrypts the password and the mail, with TLS 1.2 and 1.3', async () => {
        for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
          const tlsOptions = { ...certificate, minVersion: version, maxVersion: version }
          const server = await start({ tls, tlsOptions, auth })
          const mailer = createTestMailer(server, { tls, ca: certificate.cert, ...auth })
          expect(await mailer.send(mail())).to.deep.equal({ state: 'sent' })
          expect(server.mails).to.have.lengthOf(1)
          expect(server.mails[0]).to.include({ isSecure: true, user: 'posthorn' })
        }
      })

      it('refuses an untrusted certificate, even when the environment says not to', async () => {
        const server = await start({ tls, tlsOptions: certificate })
        for (const environment of [undefined, '0']) {
          if (environment !== undefined) process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = environment
          const outcome = await createTestMailer(server, { tls }).send(mail())
          delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
          expect(outcome).to.deep.equal({
            state: 'refused',
            error: 'the connection to the mail server failed: DEPTH_ZERO_SELF_SIGNED_CERT',
          })
        }
        expect(server.mails).to.deep.equal([])
      })

      it('refuses a certificate for another host', async () => {
        const { port } = await start({ tls, tlsOptions: certificate })
        const mailer = createTestMailer({ host: '127.0.0.1', port }, { tls, ca: certificate.cert })
        expect(await mailer.send(mail())).to.deep.equal({
          state: 'refused',
          error: 'the connection to the mail server failed: ERR_TLS_CERT_ALTNAME_INVALID',
        })
      })

      it('refuses TLS 1.1', async () => {
        const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
        const server = await start({ tls, tlsOptions: { ...certificate, ...old } })
        const mailer = createTestMailer(server, { tls, ca: certificate.cert })
        expect(await mailer.send(mail())).to.include({ state: 'refused' })
        expect(server.mails).to.deep.equal([])
      })
    })
  }

  it('sends nothing in clear to a server that does not offer STARTTLS', async () => {
    const server = await start({ tls: 'none' })
    const outcome = await createTestMailer(server, { tls: 'starttls' }).send(mail())
    expect(outcome).to.have.property('state', 'refused')
    expect(outcome)
      .to.have.property('error')
      .that.matches(/^no secure connection to the mail server could be set up: 50\d /)
    expect(server.mails).to.deep.equal([])
  })

  it('gives up on a missing handshake', async () => {
    for (const tls of ['starttls', 'implicit'] as const) {
      const server = await createRudeMailServer((at) => {
        if (at === 'STARTTLS') return '220 go on'
        return at === 'greeting' && tls === 'implicit' ? 'silence' : null
      })
      open.push(server)
      const mailer = createTestMailer(server, { tls, timeoutMs: HANDSHAKE_TIMEOUT_MS })
      expect(await mailer.send(mail())).to.deep.equal({
        state: 'refused',
        error: 'the mail server did not answer in time',
      })
    }
  })

  it('stays in clear when configured so, even where STARTTLS is offered', async () => {
    const server = await start({ tls: 'starttls', tlsOptions: certificate })
    expect(await createTestMailer(server, { tls: 'none' }).send(mail())).to.deep.equal({ state: 'sent' })
    expect(server.mails[0]).to.include({ isSecure: false })
  })
})

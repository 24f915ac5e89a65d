import { expect } from 'chai'
import { eventually } from '../../../helpers/eventually.ts'
import { createMailServer, createRudeMailServer } from '../../../helpers/notifications/mail-server.ts'
import type { MailServer } from '../../../helpers/notifications/mail-server.ts'
import { closeMailers, createTestMailer, mail } from './mailers.ts'

describe('Mailer.send', () => {
  const open: { close(): Promise<void> }[] = []

  async function start(options?: Parameters<typeof createMailServer>[0]): Promise<MailServer> {
    const server = await createMailServer(options)
    open.push(server)
    return server
  }

  afterEach(async () => {
    await closeMailers()
    await Promise.all(open.splice(0).map((server) => server.close()))
  })

  it('sends the mail as it was written, to its one recipient', async () => {
    const server = await start()
    const to = { name: 'Ánna van Dé', address: 'anna@example.com' }
    const text = 'Zażółć\n.\n..dots and a line of 1,000: ' + 'x'.repeat(1000) + '\n'
    const html = '<p>Zażółć &amp; more 😀</p>\n'
    const outcome = await createTestMailer(server, { fromName: 'Zon & Zee' }).send(
      mail({ to, subject: 'Größe 😀', text, html }),
    )
    expect(outcome).to.deep.equal({ state: 'sent' })
    expect(server.mails.map(({ envelope }) => envelope)).to.deep.equal([
      { from: 'posthorn@sender.test', to: ['anna@example.com'] },
    ])
    const { parsed } = server.mails[0]!
    expect(parsed.from).to.include({ name: 'Zon & Zee', address: 'posthorn@sender.test' })
    expect(parsed.to).to.have.lengthOf(1)
    expect(parsed.to![0]).to.include(to)
    expect(parsed.subject).to.equal('Größe 😀')
    expect([parsed.text?.trimEnd(), parsed.html?.trimEnd()]).to.deep.equal([text.trimEnd(), html.trimEnd()])
  })

  it('suppresses automatic answers, and names no software', async () => {
    const server = await start()
    await createTestMailer(server).send(mail())
    const headers = server.mails[0]!.parsed.headers.map(({ key, value }) => [key, value])
    expect(headers).to.deep.include(['auto-submitted', 'auto-generated'])
    expect(headers).to.deep.include(['x-auto-response-suppress', 'All'])
    expect(headers.map(([key]) => key)).to.not.include('x-mailer')
  })

  it('sends a message with the same Message-ID each time', async () => {
    const server = await start()
    const mailer = createTestMailer(server)
    await mailer.send(mail({ id: 'inc-7.2.9' }))
    await mailer.send(mail({ id: 'inc-7.2.9' }))
    const ids = server.mails.map(({ parsed }) => parsed.messageId)
    expect(ids).to.deep.equal(['<inc-7.2.9@sender.test>', '<inc-7.2.9@sender.test>'])
  })

  it('needs no name of the recipient', async () => {
    const server = await start()
    for (const name of [null, '']) {
      expect(
        await createTestMailer(server).send(mail({ to: { name, address: 'an@example.com' } })),
      ).to.include({
        state: 'sent',
      })
    }
    expect(server.mails.map(({ parsed }) => parsed.to?.[0]?.name)).to.deep.equal(['', ''])
  })

  describe('signing in', () => {
    const auth = { user: 'posthorn', password: 'pässword with "quotes"' }

    it('uses the user name and the password', async () => {
      const server = await start({ auth })
      expect(await createTestMailer(server, auth).send(mail())).to.include({ state: 'sent' })
      expect(server.mails[0]?.user).to.equal('posthorn')
    })

    it('permits a retry after a refused password, without printing the password', async () => {
      const server = await start({ auth })
      const wrong = { user: 'posthorn', password: 'hunter2' }
      const outcome = await createTestMailer(server, wrong).send(mail())
      expect(outcome).to.deep.equal({
        state: 'refused',
        error: 'the mail server refused to sign us in: 535',
      })
      expect(server.mails).to.deep.equal([])
    })

    it('does not print the password when the server repeats it', async () => {
      for (const repeated of [auth.password, Buffer.from(auth.password).toString('base64')]) {
        const server = await createRudeMailServer((stage) => (stage === 'MAIL' ? `451 ${repeated}` : null))
        open.push(server)
        const { password } = auth
        const outcome = await createTestMailer(server, { user: 'posthorn', password }).send(mail())
        expect(outcome).to.deep.equal({ state: 'refused', error: 'the mail server refused the mail' })
      }
    })
  })

  describe('its connections', () => {
    it('are reused', async () => {
      const server = await start()
      const mailer = createTestMailer(server)
      for (const id of ['a', 'b', 'c']) expect(await mailer.send(mail({ id }))).to.include({ state: 'sent' })
      expect({ mails: server.mails.length, connections: server.connections() }).to.deep.equal({
        mails: 3,
        connections: 1,
      })
    })

    it('are limited in number', async () => {
      const server = await start({ delayMs: 20 })
      const mailer = createTestMailer(server, { connections: 2 })
      const sending = Array.from({ length: 12 }, (_, index) => mailer.send(mail({ id: `m${index}` })))
      const outcomes = await Promise.all(sending)
      expect(outcomes.map(({ state }) => state)).to.deep.equal(Array.from({ length: 12 }, () => 'sent'))
      expect(new Set(server.mails.map(({ parsed }) => parsed.messageId))).to.have.property('size', 12)
      expect(server.connections()).to.equal(2)
    })

    it('recover after each refusal', async () => {
      const server = await start()
      const mailer = createTestMailer(server)
      const states: string[] = []
      for (const at of ['mail', 'rcpt', 'data'] as const) {
        for (const code of [451, 554]) {
          server.refuse({ at, code })
          states.push((await mailer.send(mail())).state)
          server.refuse(null)
          states.push((await mailer.send(mail())).state)
        }
      }
      const each = ['refused', 'sent', 'failed', 'sent']
      expect(states).to.deep.equal([...each, ...each, ...each])
      expect(server.mails).to.have.lengthOf(6)
    })
  })

  describe('closing', () => {
    it('waits for mails that are being sent, abandons the others, and accepts no more', async () => {
      let takeIt = (): void => undefined
      const server = await start({ until: new Promise<void>((resolve) => (takeIt = resolve)) })
      const mailer = createTestMailer(server)
      const begun = mailer.send(mail({ id: 'a' }))
      await eventually(() => expect(server.thinking()).to.equal(1))
      const queued = mailer.send(mail({ id: 'b' }))
      const closing = mailer.close()
      expect(await mailer.send(mail({ id: 'c' }))).to.deep.equal({
        state: 'refused',
        error: 'Posthorn is shutting down',
      })
      takeIt()
      await closing
      expect([(await begun).state, (await queued).state]).to.deep.equal(['sent', 'refused'])
      expect(server.mails).to.have.lengthOf(1)
    })
  })
})

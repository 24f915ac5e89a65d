import { expect } from 'chai'
import * as fc from 'fast-check'
import { isMailAddress } from '../../../../src/domain/text-rules.ts'
import type { Mailer } from '../../../../src/incidents/notifications/mailer.ts'
import { createMailServer } from '../../../helpers/notifications/mail-server.ts'
import type { MailServer, TakenMail } from '../../../helpers/notifications/mail-server.ts'
import { closeMailers, createTestMailer, mail } from './mailers.ts'

const EVIL = 'evil@evil.test'
const ADDRESS = 'an@example.com'

/** Everything a mail of ours has above its parts. */
const HEADERS = [
  'auto-submitted',
  'content-type',
  'date',
  'from',
  'message-id',
  'mime-version',
  'subject',
  'to',
  'x-auto-response-suppress',
]

const NASTY_TEXTS = [
  `x\r\nBcc: ${EVIL}`,
  `x\nBcc: ${EVIL}`,
  `x\rBcc: ${EVIL}`,
  `x\r\n\r\nanother body`,
  `x\r\n.\r\nMAIL FROM:<${EVIL}>\r\nRCPT TO:<${EVIL}>\r\nDATA\r\n`,
  `x, ${EVIL}`,
  `x; ${EVIL}`,
  `g: ${EVIL};`,
  `"x" <${EVIL}>, y`,
  `x <${EVIL}>`,
  `x" <${EVIL}>, "y`,
  `\\" <${EVIL}>, \\"`,
  `(${EVIL})`,
  `=?utf-8?q?=0D=0ABcc:_evil=40evil.test?=`,
  `é\r\nBcc: ${EVIL}`,
  `x\u2028Bcc: ${EVIL}`,
  `x\0y\ud800z`,
]

describe('Mailer.send with malicious text', () => {
  let server: MailServer
  let mailer: Mailer

  before(async () => {
    server = await createMailServer()
    mailer = createTestMailer(server)
  })

  beforeEach(() => {
    server.mails.length = 0
  })

  after(async () => {
    await closeMailers()
    await server.close()
  })

  /** By its bytes: its recipients for the server, and which headers it has. */
  function expectOneRecipient({ envelope, raw, parsed }: TakenMail, address = ADDRESS): void {
    expect(envelope).to.deep.equal({ from: 'posthorn@sender.test', to: [address] })
    const head = raw.slice(0, raw.indexOf('\r\n\r\n'))
    const names = head.split(/\r\n(?![ \t])/).map((line) => line.slice(0, line.indexOf(':')).toLowerCase())
    expect(names.sort()).to.deep.equal(HEADERS)
    expect(head).to.not.match(/[^\r]\n|\r[^\n]/)
    expect(parsed.to?.map((to) => to.address)).to.deep.equal([address])
    expect(parsed.text?.trim()).to.equal('as text')
  }

  it('sends nothing to a text that is not one plain address', async () => {
    const addresses = [
      '',
      'an',
      `${ADDRESS}, ${EVIL}`,
      `${ADDRESS},${EVIL}`,
      `${ADDRESS};${EVIL}`,
      `g: ${EVIL};`,
      `g:${ADDRESS},${EVIL};`,
      `"a b"@example.com`,
      `"${EVIL}"@example.com`,
      `<${ADDRESS}>`,
      `An <${ADDRESS}>`,
      `${ADDRESS} (x)`,
      `${ADDRESS}\r\nBcc: ${EVIL}`,
      `${ADDRESS}\nRCPT TO:<${EVIL}>`,
      `${ADDRESS}> RCPT TO:<${EVIL}`,
      `${ADDRESS} NOTIFY=SUCCESS`,
      `an@[127.0.0.1]`,
      `an@exämple.com`,
      `än@example.com`,
      `an@@example.com`,
      `an@example.com@evil.test`,
      ` ${ADDRESS}`,
      `${ADDRESS}\0`,
      `${'a'.repeat(250)}@example.com`,
    ]
    for (const address of addresses) {
      expect(await mailer.send(mail({ to: { name: 'An', address } })), address).to.deep.equal({
        state: 'failed',
        error: 'this is not a plain e-mail address',
      })
    }
    expect(server.mails).to.deep.equal([])
  })

  it('sends to an unusual but plain address unchanged', async () => {
    const odd = [
      `o'brien+tag@example.com`,
      `a!b#c$d%e&f*g/h=i?j^k_l\`m{n|o}p~q@ex-ample.com`,
      `=?utf-8?q?x=2C?=@a.test`,
    ]
    for (const address of odd) {
      expect(await mailer.send(mail({ to: { name: 'An', address } }))).to.deep.equal({ state: 'sent' })
      expectOneRecipient(server.mails.at(-1)!, address)
    }
  })

  for (const text of NASTY_TEXTS) {
    it(`keeps to the one recipient when a name or a subject is ${JSON.stringify(text)}`, async () => {
      expect(await mailer.send(mail({ to: { name: text, address: ADDRESS } }))).to.deep.equal({
        state: 'sent',
      })
      expect(await mailer.send(mail({ subject: text }))).to.deep.equal({ state: 'sent' })
      expect(server.mails).to.have.lengthOf(2)
      server.mails.forEach((taken) => expectOneRecipient(taken))
    })
  }

  it('shows a name and a subject on one line, short, and in order', async () => {
    const text = `A\r\nB\u202eC ${'x'.repeat(500)}`
    await mailer.send(mail({ to: { name: text, address: ADDRESS }, subject: text }))
    const { to, subject } = server.mails[0]!.parsed
    expect(to?.[0]?.name)
      .to.match(/^A B C x+…$/)
      .and.have.lengthOf(100)
    expect(subject)
      .to.match(/^A B C x+…$/)
      .and.have.lengthOf(200)
  })

  it('keeps to the one recipient whatever the name and the subject', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.string({ unit: fc.constantFrom(...Array.from('\r\n:;,<>"\\@()=? .éa')) }),
    )
    await fc.assert(
      fc.asyncProperty(text, text, async (name, subject) => {
        expect(
          await mailer.send(mail({ to: { name, address: ADDRESS }, subject: `S${subject}` })),
        ).to.deep.equal({
          state: 'sent',
        })
        expectOneRecipient(server.mails.at(-1)!)
      }),
      { numRuns: 100 },
    )
  })

  it('sends to every plain address, and to no other', async () => {
    const part = fc.string({
      unit: fc.constantFrom(...Array.from('abcXYZ019-.+_@!#$%&\'*/=?^`{|}~,;:<>"\\ ()[]')),
      maxLength: 12,
    })
    await fc.assert(
      fc.asyncProperty(part, part, async (local, domain) => {
        const address = `${local}@${domain}.test`
        const before = server.mails.length
        const { state } = await mailer.send(mail({ to: { name: 'An', address } }))
        expect(state === 'sent').to.equal(isMailAddress(address))
        expect(server.mails.length - before).to.equal(state === 'sent' ? 1 : 0)
        if (state === 'sent')
          expect(server.mails.at(-1)!.envelope.to.map((to) => to.toLowerCase())).to.deep.equal([
            address.toLowerCase(),
          ])
      }),
      { numRuns: 500 },
    )
  })

  it('sends a text with lines that are commands of SMTP as text', async () => {
    const text = `a\n.\nQUIT\n..\r\n.\r\nMAIL FROM:<${EVIL}>\n`
    expect(await mailer.send(mail({ text }))).to.deep.equal({ state: 'sent' })
    expect(server.mails).to.have.lengthOf(1)
    expect(server.mails[0]!.parsed.text?.trimEnd()).to.equal(text.replaceAll('\r', '').trimEnd())
  })
})

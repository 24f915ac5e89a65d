import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import Koa from 'koa'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { openMailFolder, type Mail, startMailbox, type Mailbox } from '../../../src/dev/mailbox.ts'
import { mailboxPage } from '../../../src/dev/mailbox-page.ts'
import { listen, type Listening } from '../../../src/http/listen.ts'
import { errorHandler } from '../../../src/http/answer.ts'
import { securityHeaders } from '../../../src/http/app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { sendBytes } from '../../helpers/api/raw-request.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

/** What Chromium sends when somebody opens a page. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

/** Ends every element and attribute that a page could put a text into. */
const HOSTILE = `</pre></iframe></details>"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;`

const UP_TO_DATA = ['EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<c@d.example>', 'DATA']

describe('the mailbox', () => {
  let folder: string
  let said: string[]
  let mailbox: Mailbox
  let web: Listening

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-mailbox-'))
    said = []
    mailbox = await startMailbox({ folder: join(folder, 'mails'), print: (line) => said.push(line) })
    web = await serve(null)
  })
  afterEach(async () => {
    await web.close()
    await mailbox.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  function serve(otherMailServer: string | null): Promise<Listening> {
    const hints = { receiverUrl: 'http://127.0.0.1:4711', notifyAfterSeconds: 42, otherMailServer }
    const app = new Koa()
    app.silent = true
    const page = mailboxPage(() => mailbox.mails(), hints)
    for (const middleware of [securityHeaders(''), errorHandler(silentLogger), page]) app.use(middleware)
    app.use((ctx) => {
      ctx.body = 'the next middleware'
    })
    return listen(app, { host: '127.0.0.1', port: 0 })
  }
  async function send(mail: SendMailOptions): Promise<void> {
    const transport = createTransport({ host: '127.0.0.1', port: mailbox.port, secure: false })
    await transport.sendMail({ from: 'posthorn@localhost', to: 'info@zon.example', ...mail })
  }
  const get = (accept: string, path = '/dev/mailbox', method = 'GET') =>
    fetch(`${web.url}${path}`, { method, headers: { accept } })
  const listed = async (): Promise<Mail[]> =>
    ((await (await get('application/json')).json()) as { data: Mail[] }).data
  const page = async (): Promise<string> => (await get(BROWSER)).text()
  const files = () => readdirSync(join(folder, 'mails')).sort()

  describe('as a mail server', () => {
    it('accepts a mail of text and HTML, and lists it with its time of arrival', async () => {
      const before = Date.now()
      await send({
        subject: 'Zustellung läuft schief',
        text: 'Seit 5 Minuten …',
        html: '<b>Seit 5 Minuten …</b>',
      })
      const [mail, ...others] = await listed()
      expect(others).to.deep.equal([])
      expect(mail).to.have.all.keys('to', 'subject', 'text', 'html', 'receivedAt')
      expect(mail?.to).to.equal('info@zon.example')
      expect(mail?.subject).to.equal('Zustellung läuft schief')
      expect(mail?.text.trim()).to.equal('Seit 5 Minuten …')
      expect(mail?.html?.trim()).to.equal('<b>Seit 5 Minuten …</b>')
      expect(mail?.receivedAt).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(Date.parse(mail?.receivedAt ?? '')).to.be.within(before, Date.now())
    })

    it('returns null for a missing HTML part', async () => {
      await send({ subject: 'plain', text: 'words' })
      expect((await listed())[0]?.html).to.equal(null)
    })

    it('names the recipients of the envelope, whatever the header says', async () => {
      await send({
        subject: 's',
        text: 't',
        envelope: { from: 'a@b.example', to: ['one@x.example', 'two@x.example'] },
      })
      expect((await listed())[0]?.to).to.equal('one@x.example, two@x.example')
    })

    it('prints one line for each mail, in which a subject cannot control the terminal', async () => {
      await send({ subject: `Alarm \u001b[2J\u202e!`, text: 't' })
      expect(said).to.deep.equal(['Mail to info@zon.example: Alarm \\u001b[2J\\u202e!'])
    })

    it('refuses more than a megabyte, announced or not', async () => {
      const text = 'x'.repeat(1_100_000)
      const refused = await send({ subject: 'large', text }).catch((error: unknown) => error)
      expect(refused).to.include({ responseCode: 552 })
      const answer = await talk([...UP_TO_DATA, `${text}\r\n.`])
      expect(answer).to.match(/^552 /m)
      expect(await listed()).to.deep.equal([])
    })

    it('survives a sender that disconnects in the middle of a mail', async () => {
      await talk(UP_TO_DATA, 'Subject: half')
      await send({ subject: 'whole', text: 't' })
      expect((await listed()).map(({ subject }) => subject)).to.deep.equal(['whole'])
    })
  })

  describe('as a folder', () => {
    it('keeps its mails over a restart, and skips broken files', async () => {
      await send({ subject: 'first', text: 't' })
      await mailbox.stop()
      writeFileSync(join(folder, 'mails', '000000000002.json'), '{"to":"cut o')
      writeFileSync(join(folder, 'mails', '000000000003.json'), '{"to":7}')
      mkdirSync(join(folder, 'mails', '000000000004.json'))
      writeFileSync(join(folder, 'mails', 'notes.txt'), 'not ours')
      mailbox = await startMailbox({ folder: join(folder, 'mails'), print: () => undefined })
      await send({ subject: 'second', text: 't' })
      expect((await listed()).map(({ subject }) => subject)).to.deep.equal(['second', 'first'])
      expect(files()).to.include('000000000005.json')
    })

    it('writes only complete files', async () => {
      await send({ subject: 's', text: 't' })
      expect(files()).to.deep.equal(['000000000001.json'])
    })

    it('keeps the newest 200', () => {
      const mails = openMailFolder(join(folder, 'many'))
      const mail = { to: 'a@b.example', text: '', html: null, receivedAt: '2026-01-02T03:04:05.678Z' }
      for (let number = 1; number <= 205; number++) mails.keep({ ...mail, subject: String(number) })
      const subjects = mails.newestFirst().map(({ subject }) => Number(subject))
      expect(subjects).to.deep.equal(Array.from({ length: 200 }, (_, index) => 205 - index))
      expect(readdirSync(join(folder, 'many'))).to.have.length(200)
    })

    it('can be emptied by hand while it is in use', async () => {
      await send({ subject: 'before', text: 't' })
      rmSync(join(folder, 'mails'), { recursive: true })
      expect(await listed()).to.deep.equal([])
      await send({ subject: 'after', text: 't' })
      expect((await listed()).map(({ subject }) => subject)).to.deep.equal(['after'])
    })
  })

  describe('as a page', () => {
    it('answers HTML to a browser and JSON to other clients', async () => {
      for (const [accept, type] of [
        [BROWSER, 'text/html'],
        ['text/html', 'text/html'],
        ['application/json', 'application/json'],
        ['*/*', 'application/json'],
        ['image/png', 'application/json'],
        ['text/html;q=0.1, application/json', 'application/json'],
      ] as const) {
        const answer = await get(accept)
        expect(answer.status, accept).to.equal(200)
        expect(answer.headers.get('content-type'), accept).to.match(new RegExp(`^${type}; charset=utf-8$`))
        expect(answer.headers.get('vary'), accept).to.equal('Accept')
      }
      const bare = await sendBytes(
        web.url,
        'GET /dev/mailbox HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      )
      expect(bare).to.include('application/json').and.include('{"data":[]}')
    })

    it('shows mails, newest first', async () => {
      await send({ subject: 'older', text: 'first words' })
      await send({ subject: 'newer', text: 'second words', html: '<i>second</i>' })
      const html = await page()
      const positions = ['newer', 'second words', 'older', 'first words'].map((words) => html.indexOf(words))
      expect(positions).to.deep.equal([...positions].sort((one, other) => one - other))
      expect(positions[0]).to.be.greaterThan(0)
      expect(html).to.include('info@zon.example').and.include('srcdoc="&lt;i&gt;second')
      expect(html).to.match(/<time datetime="[^"]+">\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC</)
    })

    it('escapes everything that a mail contains', async () => {
      await send({ subject: HOSTILE, text: HOSTILE, html: `<p>${HOSTILE}` })
      await send({ subject: 'quotes', text: 't', html: `" onload="alert(1)` })
      const html = await page()
      expect(html).not.to.match(/<script|<img|onload="/)
      for (const element of ['pre', 'details', 'article'])
        expect(html.split(`</${element}>`), element).to.have.length(3)
      expect(
        html.match(/<iframe sandbox="" [^<>"]*"[^<>"]*" title="[^<>"]*" srcdoc="[^<>"]*"><\/iframe>/g),
      ).to.have.length(2)
      expect((await listed())[1]?.subject).to.equal(HOSTILE)
    })

    it('runs no script and loads nothing, by a policy of its own', async () => {
      const answer = await get(BROWSER)
      const policy = answer.headers.get('content-security-policy') ?? ''
      expect(policy.split('; ')).to.have.members([
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ])
      expect(answer.headers.get('x-content-type-options')).to.equal('nosniff')
      expect(answer.headers.get('cache-control')).to.equal('no-store')
    })

    it('reloads by itself until it is paused', async () => {
      expect(await page()).to.include('<meta http-equiv="refresh" content="5">')
      expect(await (await get(BROWSER, '/dev/mailbox?paused')).text()).not.to.include('http-equiv')
    })

    it('explains how to get a mail while it is empty', async () => {
      expect(await page())
        .to.include('http://127.0.0.1:4711/fail')
        .and.include('42 seconds')
        .and.include('POSTHORN_NOTIFY_AFTER_SECONDS')
    })

    it('names the other mail server when mails go elsewhere', async () => {
      await web.close()
      web = await serve('smtp.<zon>.example')
      expect(await page())
        .to.include('smtp.&lt;zon&gt;.example')
        .and.not.include('/fail')
    })

    it('answers HEAD as GET without the body', async () => {
      const answer = await get(BROWSER, '/dev/mailbox', 'HEAD')
      expect([answer.status, await answer.text()]).to.deep.equal([200, ''])
      expect(answer.headers.get('content-type')).to.include('text/html')
    })

    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      it(`refuses ${method}`, async () => {
        const answer = await get('*/*', '/dev/mailbox', method)
        expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD'])
        expect(await answer.json()).to.include({ code: 'method_not_allowed' })
      })
    }

    it('passes every other path on', async () => {
      for (const path of ['/', '/dev', '/dev/mailbox/', '/dev/mailbox/1', '/DEV/mailbox', '/api/event-keys'])
        expect(await (await get('*/*', path)).text(), path).to.equal('the next middleware')
    })
  })

  /**
   * Sends these lines, each after the answer to the one before, then perhaps more, and disconnects. Returns the answers.
   */
  async function talk(lines: string[], lastWords = ''): Promise<string> {
    const socket = connect(mailbox.port, '127.0.0.1')
    let answers = ''
    socket.on('data', (chunk) => (answers += chunk.toString()))
    for (const line of [...lines, '']) {
      const read = answers.length
      // The last line of an answer has a space after its code.
      await eventually(() => expect(answers.slice(read)).to.match(/^\d{3} .*\r\n$/m))
      socket.write(line === '' ? lastWords : `${line}\r\n`)
    }
    socket.destroySoon()
    await once(socket, 'close')
    return answers
  }
})

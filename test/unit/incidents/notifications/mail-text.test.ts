import { expect } from 'chai'
import {
  composeMail,
  composePush,
  type MailText,
  type Notice,
} from '../../../../src/incidents/notifications/mail-text.ts'

const NOTICE: Notice = {
  kind: 1,
  incidentId: '01933b2e-7a61-7c3f-9d4e-0123456789ab',
  webhookId: '01933b2e-0000-7000-8000-000000000001',
  organisationName: 'Café Tilia',
  timeZone: 'Europe/Brussels',
  url: 'https://hooks.example.com/in/orders',
  webhookDescription: '',
  failingSince: new Date('2026-11-21T16:05:59Z'),
  isFailing: true,
  waiting: 3,
  failed: 0,
  lastError: 'The endpoint answered 500 Internal Server Error.',
}
const PUBLIC_URL = 'https://posthorn.example.com'
const OPTIONS = { brandName: 'Posthorn', publicUrl: PUBLIC_URL, warn: () => undefined }

function compose(changes: Partial<Notice> = {}, publicUrl = PUBLIC_URL): MailText & { warnings: string[] } {
  const warnings: string[] = []
  return {
    ...composeMail(
      { ...NOTICE, ...changes },
      { ...OPTIONS, publicUrl, warn: (reason) => warnings.push(reason) },
    ),
    warnings,
  }
}

/** The body as a mail program shows it, but for the line breaks. */
function readHtml(html: string): string {
  const shown = html.slice(html.indexOf('<body')).replace(/<[^>]+>/g, ' ')
  const entities = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' }
  return Object.entries(entities).reduce((text, [entity, meant]) => text.replaceAll(entity, meant), shown)
}

function wordsOf(text: string): string[] {
  return text.split(/[\s:]+/).filter((word) => word !== '')
}

describe('composeMail', () => {
  it("has the webhook's own name in subject and text, before what its URL is called", () => {
    const named = compose({ webhookDescription: 'Bookings to the ERP' })
    const name = 'Bookings to the ERP – hooks.example.com/in/orders'
    expect(named.subject).to.equal(`Webhook deliveries to ${name} are failing`)
    expect(named.text).to.include(`Webhook: ${name}\n`)
    expect(readHtml(named.html)).to.include(name)
    expect(compose({ kind: 2, webhookDescription: 'ERP' }).subject).to.match(
      /^Webhook deliveries to ERP – hooks/,
    )
    const push = composePush({ ...NOTICE, webhookDescription: 'x'.repeat(200) }, OPTIONS)
    expect(push.title).to.include(`to ${'x'.repeat(99)}… – hooks.example.com`)
  })

  it('calls the service by its brand', () => {
    const { text, html } = composeMail(NOTICE, { ...OPTIONS, brandName: 'Zon & Zee' })
    expect(text).to.include('\n\nZon & Zee goes on retrying on its schedule.').and.not.include('Posthorn')
    expect(readHtml(html)).to.include('Zon & Zee goes on retrying')
  })

  it('describes persistent failures', () => {
    const { subject, text, warnings } = compose()
    expect(subject).to.equal('Webhook deliveries to hooks.example.com/in/orders are failing')
    expect(text).to.equal(
      [
        'Deliveries to a webhook of Café Tilia keep failing.',
        '',
        'Webhook: hooks.example.com/in/orders',
        'Failing since: Saturday 21 November 2026 at 17:05 (Europe/Brussels, UTC+1)',
        'Deliveries: 3 are waiting for a retry, none has permanently failed',
        'Last error: The endpoint answered 500 Internal Server Error.',
        '',
        'Posthorn goes on retrying on its schedule. Please check the endpoint: once it confirms deliveries again, those that are waiting go out by themselves.',
        '',
        'Open this webhook in the developer area:',
        'https://posthorn.example.com/developer?webhook=01933b2e-0000-7000-8000-000000000001',
        '',
        'This is one of at most two messages about this incident.',
        '',
      ].join('\n'),
    )
    expect(warnings).to.deep.equal([])
  })

  it('does not say that deliveries fail where the message is late and they no longer do', () => {
    const { subject, text } = compose({ isFailing: false })
    expect(subject).to.equal('Webhook deliveries to hooks.example.com/in/orders were failing')
    expect(text).to.include('Deliveries to a webhook of Café Tilia kept failing, and no longer do.\n')
    expect(text).to.include('\nFirst failure: Saturday 21 November 2026 at 17:05')
    expect(text).to.include('on its schedule. Those that are waiting go out by themselves.\n')
    expect(composePush({ ...NOTICE, isFailing: false }, OPTIONS).body).to.match(
      /^Deliveries failed, first on Saturday/,
    )
  })

  it('promises no retry where every failed delivery has permanently failed', () => {
    const { text } = compose({ waiting: 0, failed: 1 })
    expect(text).to.include('then retry the failed deliveries').and.not.include('goes on retrying')
  })

  it('does not say that an event is permanently failed where a retry or a discard ended that before it was sent', () => {
    const { text } = compose({ kind: 2, waiting: 3, failed: 0 })
    expect(text).to.include('and was marked permanently failed; none is any more.\n')
    expect(text).to.include('goes on retrying').and.not.include('then retry the failed deliveries')
  })

  it('describes an undeliverable event, and what to do', () => {
    const { subject, text } = compose({ kind: 2, waiting: 0, failed: 1 })
    expect(subject).to.equal(
      'Webhook deliveries to hooks.example.com/in/orders: an event could not be delivered',
    )
    expect(text).to.include(
      'At least one event for a webhook of Café Tilia could not be delivered and is marked permanently failed.',
    )
    expect(text).to.include('none is waiting for a retry, 1 has permanently failed')
    expect(text).to.include(
      'What has permanently failed is not attempted again automatically. Please fix the endpoint, then retry the failed deliveries in the developer area.',
    )
    expect(text).to.include('This is one of at most two messages about this incident.')
  })

  describe('the counts', () => {
    const COUNTS: readonly [waiting: number, failed: number, line: string][] = [
      [0, 0, 'none is waiting for a retry, none has permanently failed'],
      [1, 1, '1 is waiting for a retry, 1 has permanently failed'],
      [2, 2, '2 are waiting for a retry, 2 have permanently failed'],
      [12_345, 6_789, '12,345 are waiting for a retry, 6,789 have permanently failed'],
      [100_000, 100_001, '100,000 are waiting for a retry, more than 100,000 have permanently failed'],
    ]
    for (const [waiting, failed, line] of COUNTS) {
      it(`read "${line}"`, () => {
        expect(compose({ waiting, failed }).text).to.include(`Deliveries: ${line}\n`)
      })
    }
  })

  describe('the time', () => {
    const TIMES: readonly [zone: string, at: string, shown: string][] = [
      ['Europe/Brussels', '2026-01-15T09:00Z', 'Thursday 15 January 2026 at 10:00 (Europe/Brussels, UTC+1)'],
      ['Europe/Brussels', '2026-07-15T09:00Z', 'Wednesday 15 July 2026 at 11:00 (Europe/Brussels, UTC+2)'],
      ['Europe/Brussels', '2026-03-29T00:59Z', 'Sunday 29 March 2026 at 01:59 (Europe/Brussels, UTC+1)'],
      ['Europe/Brussels', '2026-03-29T01:00Z', 'Sunday 29 March 2026 at 03:00 (Europe/Brussels, UTC+2)'],
      ['Europe/Brussels', '2026-10-25T00:30Z', 'Sunday 25 October 2026 at 02:30 (Europe/Brussels, UTC+2)'],
      ['Europe/Brussels', '2026-10-25T01:30Z', 'Sunday 25 October 2026 at 02:30 (Europe/Brussels, UTC+1)'],
      ['Europe/London', '2026-12-31T23:59Z', 'Thursday 31 December 2026 at 23:59 (Europe/London, UTC)'],
      ['America/New_York', '2026-07-01T02:00Z', 'Tuesday 30 June 2026 at 22:00 (America/New_York, UTC-4)'],
      ['Asia/Kolkata', '2026-11-21T16:05Z', 'Saturday 21 November 2026 at 21:35 (Asia/Kolkata, UTC+5:30)'],
      ['UTC', '2026-11-21T00:00Z', 'Saturday 21 November 2026 at 00:00 (UTC)'],
    ]
    for (const [timeZone, at, shown] of TIMES) {
      it(`of ${at} in ${timeZone} is ${shown}`, () => {
        const { text, warnings } = compose({ timeZone, failingSince: new Date(at) })
        expect(text).to.include(`Failing since: ${shown}\n`)
        expect(warnings).to.deep.equal([])
      })
    }

    it('falls back to Brussels, with a warning, when the zone is invalid', () => {
      for (const timeZone of ['', 'Mars/Olympus', 'local', 'Europe/Brussels\r\nx', '<b>']) {
        const { text, html, warnings } = compose({ timeZone })
        expect(text).to.include('at 17:05 (Europe/Brussels, UTC+1)\n')
        expect(html).to.not.include('<b>')
        expect(warnings).to.have.lengthOf(1)
        expect(warnings[0]).to.match(
          /^".*" is not a time zone; the times in the notification are in Europe\/Brussels\.$/,
        )
      }
    })
  })

  describe('the webhook', () => {
    it('is shown without user name, password, query and fragment', () => {
      const url = 'https://user:pass@hooks.example.com:8443/in?token=secret#part'
      const { subject, text, html } = compose({ url })
      expect(subject).to.equal('Webhook deliveries to hooks.example.com:8443/in (000001) are failing')
      expect(text).to.include('Webhook: hooks.example.com:8443/in (000001)\n')
      for (const hidden of ['user', 'pass', 'token', 'secret', '#part']) {
        expect(`${subject}${text}${html}`.replaceAll(/<[^>]+>/g, '')).to.not.include(hidden)
      }
    })

    it('keeps the subject short, and shows the host', () => {
      const host = `${'long-label-of-a-host.'.repeat(11)}example.com`
      for (const kind of [1, 2] as const) {
        const { subject } = compose({ kind, url: `https://${host}/${'x'.repeat(1700)}` })
        expect(subject.length).to.be.lessThan(150)
        expect(subject).to.include('.example.com')
      }
      expect(compose({ url: `https://a.eu/${'x'.repeat(1700)}` }).text.length).to.be.lessThan(1200)
    })

    it('is distinguished from another one on the same host, in the subject too', () => {
      const [one, two] = ['T024BE7LD/B01/kFzPq3mVw', 'T024BE7LD/B02/Zs81mQqfe'].map((path, index) =>
        compose({
          url: `https://hooks.example.com/services/${path}`,
          webhookId: `01933b2e-0000-7000-8000-00000000000${index}`,
        }),
      )
      expect(one!.subject).to.equal(
        'Webhook deliveries to hooks.example.com/services/T0… (000000) are failing',
      )
      expect(two!.subject).to.not.equal(one!.subject)
      expect(one!.text).to.include('Webhook: hooks.example.com/services/T0… (000000)\n')
      expect(`${one!.text}${one!.html}`).to.not.match(/T024|B01|kFz/)
    })

    it('is shown as its host when it has no path', () => {
      expect(compose({ url: 'https://hooks.example.com/' }).text).to.include('Webhook: hooks.example.com\n')
    })
  })

  it('links to nothing without a base URL', () => {
    const { text, html } = compose({}, '')
    expect(text).to.not.match(/https?:|developer area/)
    expect(html).to.not.match(/https?:|href/)
  })

  it('leaves out an error that is no longer known', () => {
    expect(compose({ lastError: null }).text).to.not.include('Last error')
  })

  it('keeps foreign text on one line, and short', () => {
    const { text } = compose({
      organisationName: `A\r\n\r\nB\u202eC ${'x'.repeat(500)}`,
      lastError: `one\ntwo\u2028three ${'😀'.repeat(500)}`,
    })
    expect(text).to.include('webhook of A B C xxx')
    expect(text).to.include('Last error: one two three 😀')
    expect(text).to.not.match(/\p{Cs}|\r/u)
    expect(text.length).to.be.lessThan(1500)
  })

  describe('the HTML', () => {
    it('matches the text', () => {
      for (const kind of [1, 2] as const) {
        for (const publicUrl of ['', PUBLIC_URL]) {
          const { text, html } = compose({ kind, failed: 2, lastError: `<b>"R&D" said 'no'</b>` }, publicUrl)
          const address = /https:\S+/
          expect(address.exec(html)?.[0].replace(/".*/, '')).to.equal(address.exec(text)?.[0])
          expect(wordsOf(readHtml(html))).to.deep.equal(wordsOf(text.replace(address, '')))
        }
      }
    })

    it('escapes everything', () => {
      const evil = `<script>alert("1")</script>'"&`
      const { html } = compose(
        { organisationName: evil, lastError: evil, webhookId: evil, url: `https://a.eu/${evil}` },
        `https://p.eu/"><script>`,
      )
      expect(html).to.not.match(/<script|<\/script|'"&|"1"/)
      expect(html).to.include('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&quot;&amp;')
    })

    it('loads nothing, and sets no colours', () => {
      const { html } = compose()
      expect(html).to.not.match(/<(img|link|script|style|iframe)|src=|url\(|@import/i)
      expect(html).to.include('<meta name="color-scheme" content="light dark">')
      expect(html).to.not.match(/[^-]color:|background/)
      expect(html.match(/https?:[^"<]*/g)).to.deep.equal([
        'https://posthorn.example.com/developer?webhook=01933b2e-0000-7000-8000-000000000001',
      ])
    })
  })
})

describe('composePush', () => {
  it('summarises the mail', () => {
    expect(composePush(NOTICE, OPTIONS)).to.deep.equal({
      title: 'Webhook deliveries to hooks.example.com/in/orders are failing',
      body: 'Deliveries have been failing since Saturday 21 November 2026 at 17:05 (Europe/Brussels, UTC+1). 3 are waiting for a retry, none has permanently failed.',
      url: 'https://posthorn.example.com/developer?webhook=01933b2e-0000-7000-8000-000000000001',
      tag: '01933b2e-7a61-7c3f-9d4e-0123456789ab',
    })
  })

  it('opens the page of its own origin without a base URL', () => {
    expect(composePush(NOTICE, { ...OPTIONS, publicUrl: '' }).url).to.equal(
      '/developer?webhook=01933b2e-0000-7000-8000-000000000001',
    )
  })

  it('stays below 3 KB for any content', () => {
    const long = '"\\😀\u0001'.repeat(5000)
    const notice = {
      ...NOTICE,
      organisationName: long,
      timeZone: long,
      lastError: long,
      waiting: 1e15,
      failed: 1e15,
    }
    for (const kind of [1, 2] as const) {
      for (const url of [`https://${'a'.repeat(63)}.${'b'.repeat(63)}.eu/${long}`, long]) {
        const push = composePush(
          { ...notice, kind, url },
          { ...OPTIONS, publicUrl: `https://${'p'.repeat(3000)}.eu` },
        )
        expect(Buffer.byteLength(JSON.stringify(push))).to.be.lessThan(3000)
      }
    }
  })
})

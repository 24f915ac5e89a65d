import { inspect } from 'node:util'
import { expect } from 'chai'
import { checkWebhookUrl } from '../../../src/outbound/url-rules.ts'

const STRICT = { allowHttp: false, allowedCidrs: [] }
const HTTP = { allowHttp: true, allowedCidrs: [] }
const LOOPBACK = { allowHttp: true, allowedCidrs: ['127.0.0.0/8'] }

const GOOD: [raw: string, canonical: string][] = [
  ['https://hooks.shop.eu/in', 'https://hooks.shop.eu/in'],
  ['https://hooks.shop.eu', 'https://hooks.shop.eu/'],
  ['HTTPS://Hooks.Shop.EU/In', 'https://hooks.shop.eu/In'],
  ['https://hooks.shop.eu:443/', 'https://hooks.shop.eu/'],
  ['https://hooks.shop.eu:8443/', 'https://hooks.shop.eu:8443/'],
  ['https://hooks.shop.eu:1024/', 'https://hooks.shop.eu:1024/'],
  ['https://hooks.shop.eu:65535/', 'https://hooks.shop.eu:65535/'],
  ['https://hooks.shop.eu/a?b=c&d=%20e', 'https://hooks.shop.eu/a?b=c&d=%20e'],
  ['https://hooks.shop.eu/@me', 'https://hooks.shop.eu/@me'],
  ['https://hooks.shop.eu/a/../b', 'https://hooks.shop.eu/b'],
  ['https://hooks.shop.eu./', 'https://hooks.shop.eu./'],
  ['https://a_b.shop.eu/', 'https://a_b.shop.eu/'],
  ['https://bücher.de/é', 'https://xn--bcher-kva.de/%C3%A9'],
  ['https://8.8.8.8/', 'https://8.8.8.8/'],
  ['https://0x08080808/', 'https://8.8.8.8/'],
  ['https://[2606:4700::6810:1]:8443/x', 'https://[2606:4700::6810:1]:8443/x'],
  ['https://notlocalhost.eu/', 'https://notlocalhost.eu/'],
  ['https://internal.shop.eu/', 'https://internal.shop.eu/'],
  [`https://${'a'.repeat(63)}.eu/`, `https://${'a'.repeat(63)}.eu/`],
]

const BAD: [code: string, raws: unknown[]][] = [
  ['invalid_url', [undefined, null, 5, {}, ['https://a.eu'], 'https://a.eu:65536/', 'https://a.eu:x/']],
  ['invalid_url', ['https://[::1/', 'https://[fe80::zz]/x', 'https://1.2.3.4.5/']],
  ['invalid_url', ['https://256.1.1.1/', 'https://a<b.eu/', 'https://a.eu:-1/', 'https://?a']],
  ['too_long', [`https://a.eu/${'a'.repeat(2048)}`, `https://a.eu/${'é'.repeat(500)}`]],
  [
    'invalid_characters',
    [' https://a.eu', 'https://a.eu ', 'https://a.eu/\n', 'https://a\t.eu/', 'https://a.eu\\b'],
  ],
  [
    'invalid_characters',
    ['https:\\\\a.eu', 'https://a.eu/\u0000', 'https://a.eu/\u007f', 'https://a\u00ad.eu/'],
  ],
  [
    'invalid_characters',
    ['https://a.eu/\u2028', 'https://a\u200b.eu/', 'https://a.eu/\ud800', 'https://a.eu/\u202e'],
  ],
  [
    'scheme_not_allowed',
    ['', 'a.eu', '//a.eu', 'http://a.eu/', 'https:a.eu', 'https:/a.eu', 'https:///a.eu'],
  ],
  [
    'scheme_not_allowed',
    ['ftp://a.eu/', 'file:///etc/passwd', 'javascript:alert(1)', 'data:,x', 'wss://a.eu/'],
  ],
  ['invalid_host', ['https://', 'http://']],
  ['fragment_not_allowed', ['https://a.eu/#x', 'https://a.eu#', 'https://a.eu#@b.eu/']],
  [
    'credentials_not_allowed',
    ['https://user@a.eu/', 'https://user:pass@a.eu/', 'https://@a.eu/', 'https://:@a.eu/'],
  ],
  ['credentials_not_allowed', ['https://a.eu:443@127.0.0.1/']],
  [
    'invalid_host',
    ['https://%31%32%37.0.0.1/', 'https://a%2eeu/', 'https://a.eu:/', 'https://[fe80::1%25lo]/'],
  ],
  [
    'invalid_host',
    ['https://a..eu/', 'https://a.eu../', 'https://.a.eu/', 'https://-a.eu/', 'https://a-.eu/'],
  ],
  [
    'invalid_host',
    [`https://${'a'.repeat(64)}.eu/`, `https://${'a.'.repeat(127)}eu/`, 'https://a!b.eu/', 'https://*.eu/'],
  ],
  ['host_not_public', ['https://127.0.0.1/', 'https://127.1/', 'https://0x7f.1/', 'https://017700000001/']],
  [
    'host_not_public',
    ['https://2130706433/', 'https://127.0.0.1./', 'https://１２７.０.０.１/', 'https://127。0。0。1/'],
  ],
  ['host_not_public', ['https://①②⑦.⓪.⓪.①/', 'https://0/', 'https://0.0.0.0/', 'https://10.0.0.1/']],
  [
    'host_not_public',
    ['https://169.254.169.254/latest/meta-data', 'https://192.168.1.1/', 'https://100.100.100.200/'],
  ],
  [
    'host_not_public',
    ['https://168.63.129.16/', 'https://[::1]/', 'https://[::]/', 'https://[::ffff:127.0.0.1]/'],
  ],
  [
    'host_not_public',
    ['https://[::ffff:7f00:1]/', 'https://[fd00:ec2::254]/', 'https://[fe80::1]/', 'https://[2002::1]/'],
  ],
  ['host_not_public', ['https://[64:ff9b::7f00:1]/', 'https://[2001:db8::1]/', 'https://255.255.255.255/']],
  [
    'host_not_public',
    ['https://localhost/', 'https://LOCALHOST./', 'https://a.localhost/', 'https://localhost.localdomain/'],
  ],
  [
    'host_not_public',
    ['https://intranet/', 'https://db/', 'https://metadata.google.internal/', 'https://printer.local/'],
  ],
  [
    'host_not_public',
    ['https://router.lan/', 'https://nas.home/', 'https://x.corp/', 'https://a.home.arpa/'],
  ],
  [
    'host_not_public',
    ['https://x.onion/', 'https://a.test/', 'https://a.invalid/', 'https://a.example/', 'https://local./'],
  ],
  [
    'port_not_allowed',
    ['https://a.eu:0/', 'https://a.eu:1/', 'https://a.eu:22/', 'https://a.eu:25/', 'https://a.eu:80/'],
  ],
  [
    'port_not_allowed',
    ['https://a.eu:444/', 'https://a.eu:1023/', 'https://a.eu:2049/', 'https://a.eu:5060/'],
  ],
  ['port_not_allowed', ['https://a.eu:6000/', 'https://a.eu:6667/', 'https://a.eu:10080/']],
]

describe('checkWebhookUrl', () => {
  for (const [raw, canonical] of GOOD) {
    it(`accepts ${raw.slice(0, 60)} and returns its canonical form`, () => {
      expect(checkWebhookUrl(raw, STRICT)).to.deep.equal({ ok: true, url: canonical })
    })
  }

  for (const [code, raws] of BAD) {
    for (const raw of raws) {
      it(`refuses ${inspect(raw).slice(0, 60)} as ${code}`, () => {
        expect(checkWebhookUrl(raw, STRICT)).to.include({ ok: false, code })
      })
    }
  }

  it('accepts its own canonical form unchanged', () => {
    for (const [, url] of GOOD) expect(checkWebhookUrl(url, STRICT)).to.deep.equal({ ok: true, url })
  })

  it('accepts plain http, on port 80 too, only where the operator allows it', () => {
    for (const url of ['http://a.eu/', 'http://a.eu:8080/']) {
      expect(checkWebhookUrl(url, HTTP)).to.deep.equal({ ok: true, url })
      expect(checkWebhookUrl(url, STRICT)).to.include({ ok: false, code: 'scheme_not_allowed' })
    }
    expect(checkWebhookUrl('http://a.eu:81/', HTTP)).to.include({ code: 'port_not_allowed' })
    expect(checkWebhookUrl('ftp://a.eu/', HTTP)).to.include({ code: 'scheme_not_allowed' })
    expect(checkWebhookUrl('http://127.0.0.1/', HTTP)).to.include({ code: 'host_not_public' })
  })

  it('accepts plain http to this machine only, where the operator allows it for loopback', () => {
    const policy = { allowHttp: 'loopback', allowedCidrs: ['127.0.0.0/8', '::1/128', '10.0.0.0/8'] } as const
    for (const url of [
      'http://127.0.0.1:4000/',
      'http://[::1]:4000/',
      'http://[::ffff:7f00:1]:4000/',
      'http://localhost/',
      'http://app.localhost:4000/',
      'https://10.0.0.1/',
    ])
      expect(checkWebhookUrl(url, policy)).to.deep.equal({ ok: true, url })
    for (const url of [
      'http://a.eu/',
      'http://8.8.8.8/',
      'http://10.0.0.1/',
      'http://localhost.a.eu/',
      'http://nas/',
    ])
      expect(checkWebhookUrl(url, policy), url).to.include({ ok: false, code: 'scheme_not_allowed' })
    expect(checkWebhookUrl('http://a.eu/', policy))
      .to.have.property('detail')
      .that.includes('this machine itself')
    expect(checkWebhookUrl('http://127.0.0.1/', { ...policy, allowedCidrs: [] })).to.include({
      code: 'host_not_public',
    })
  })

  it('accepts a private address only inside an allowed network', () => {
    for (const url of ['http://127.0.0.1:4000/', 'http://[::ffff:7f00:1]:4000/', 'http://127.9.9.9/']) {
      expect(checkWebhookUrl(url, LOOPBACK)).to.deep.equal({ ok: true, url })
    }
    for (const url of ['http://10.0.0.1/', 'http://[::1]/', 'https://169.254.169.254/']) {
      expect(checkWebhookUrl(url, LOOPBACK)).to.include({ ok: false, code: 'host_not_public' })
    }
  })

  it('accepts localhost only where a loopback network is allowed', () => {
    for (const url of ['http://localhost:4000/', 'http://app.localhost:4000/']) {
      expect(checkWebhookUrl(url, LOOPBACK)).to.deep.equal({ ok: true, url })
      expect(checkWebhookUrl(url, { ...HTTP, allowedCidrs: ['127.0.0.1/32'] })).to.include({ ok: true })
      expect(checkWebhookUrl(url, { ...HTTP, allowedCidrs: ['10.0.0.0/8'] })).to.include({
        code: 'host_not_public',
      })
    }
  })

  it('accepts private names only where a private network is allowed', () => {
    const policy = { allowHttp: true, allowedCidrs: ['10.0.0.0/8'] }
    for (const url of ['http://receiver:8080/', 'https://hooks.internal/', 'https://nas.local/']) {
      expect(checkWebhookUrl(url, policy)).to.deep.equal({ ok: true, url })
    }
  })
})

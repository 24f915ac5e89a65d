import { expect } from 'chai'
import { nameWebhook, shortenUrl } from '../../../src/domain/webhook-name.ts'

const ID = '01933b2e-0000-7000-8000-0000004b7f3a'

describe('nameWebhook', () => {
  const NAMES: readonly [url: string, name: string][] = [
    ['https://hooks.example.com/', 'hooks.example.com'],
    ['https://hooks.example.com:8443/in/orders', 'hooks.example.com:8443/in/orders'],
    ['https://hooks.example.com/v1/webhooks/42/', 'hooks.example.com/v1/webhooks/42/'],
    [
      'https://hooks.example.com/services/T00000000/B00000000/XXXXXXXXXXXX',
      'hooks.example.com/services/T0… (4b7f3a)',
    ],
    [
      'https://hooks.example.com/api/webhooks/112233445566/a-token',
      'hooks.example.com/api/webhooks/11… (4b7f3a)',
    ],
    ['https://hooks.example.com/letmeinplease', 'hooks.example.com/le… (4b7f3a)'],
    ['https://hooks.example.com/s3cr3t', 'hooks.example.com/s3… (4b7f3a)'],
    ['https://hooks.example.com/Secret', 'hooks.example.com/Se… (4b7f3a)'],
    ['https://hooks.example.com/a/b/c/d/e', 'hooks.example.com/a/b/c/d/e… (4b7f3a)'],
    ['https://hooks.example.com/%C3%A9t%C3%A9', 'hooks.example.com/%C… (4b7f3a)'],
    ['https://hooks.example.com/in?token=secret', 'hooks.example.com/in (4b7f3a)'],
    ['https://hooks.example.com/?token=secret', 'hooks.example.com (4b7f3a)'],
    ['https://user:pass@hooks.example.com/in#part', 'hooks.example.com/in'],
    [
      `https://${'a'.repeat(60)}.${'b'.repeat(30)}.example/`,
      `…${`${'a'.repeat(60)}.${'b'.repeat(30)}.example`.slice(-79)} (4b7f3a)`,
    ],
    ['no URL', 'an unknown host (4b7f3a)'],
  ]
  for (const [url, name] of NAMES) {
    it(`names ${url.slice(0, 80)}`, () => {
      expect(nameWebhook(url, ID)).to.equal(name)
    })
  }

  it('distinguishes two webhooks on one host by their paths, or else by their ids', () => {
    const other = ID.replace(/.{6}$/, 'c0ffee')
    const pairs = [
      ['https://h.example/orders', 'https://h.example/invoices'],
      [
        'https://h.example/services/T01/B02/xyzxyzxyzxyzxyz',
        'https://h.example/services/T01/B02/abcabcabcabcabcabc',
      ],
      ['https://h.example/in?a=1', 'https://h.example/in?a=2'],
    ] as const
    for (const [one, two] of pairs) expect(nameWebhook(one, ID)).to.not.equal(nameWebhook(two, other))
  })
})

describe('shortenUrl', () => {
  it('keeps scheme, host and port, shortens the path and leaves out the query', () => {
    expect(shortenUrl('https://hooks.example.com:8443/services/T00000000/B0?token=secret')).to.equal(
      'https://hooks.example.com:8443/services/T0…',
    )
    expect(shortenUrl('http://127.0.0.1:3000/?token=secret')).to.equal('http://127.0.0.1:3000/')
    const long = `https://${'a.'.repeat(60)}example.com/`
    expect(shortenUrl(long)).to.equal(long)
  })

  it('reveals at most two characters of a possible credential', () => {
    const secrets = [
      'T024BE7LD',
      '0123456789abcdef',
      'kFzPq3mVw',
      'correct-horse-battery',
      'ABCD',
      '%2e%2e%2f',
    ]
    for (const secret of secrets)
      for (const url of [`https://h.example/${secret}`, `https://h.example/hooks/${secret}/x?k=${secret}`])
        expect(shortenUrl(url)).to.not.include(secret.slice(0, 3))
  })
})

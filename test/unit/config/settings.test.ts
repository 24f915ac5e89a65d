import { expect } from 'chai'
import { ALL_SETTINGS, loadConfig, type Environment } from '../../../src/config/load.ts'
import { parseFrameAncestors, parseOperatorKeys } from '../../../src/config/parsers.ts'
import { SETTINGS } from '../../../src/config/settings.ts'
import { BRAND_SETTINGS } from '../../../src/process/service-settings.ts'
import { configProblemsOf } from '../../helpers/cli/run-cli.ts'

const required: Environment = {
  DATABASE_URL: 'postgres://posthorn:p@db:5432/posthorn',
  POSTHORN_ENCRYPTION_KEYS: `first:${'cd'.repeat(32)}`,
}

describe('the notification settings', () => {
  const VAPID_KEY = `${'aZ09-_'.repeat(7)}A`

  it('read every variable that is set', () => {
    const env = {
      POSTHORN_PUBLIC_URL: 'https://hooks.example.com/posthorn//',
      POSTHORN_NOTIFY_AFTER_SECONDS: '5',
      SMTP_HOST: 'smtp.example.com',
      SMTP_PORT: '465',
      SMTP_TLS: 'implicit',
      SMTP_USER: 'posthorn',
      SMTP_PASSWORD: 'p w=\'"#',
      SMTP_FROM: 'no-reply+hooks@example.com',
      VAPID_PRIVATE_KEY: VAPID_KEY,
    }
    expect(loadConfig({ ...required, ...env }, ALL_SETTINGS)).to.include({
      // Without the slashes: a path is put behind it.
      publicUrl: 'https://hooks.example.com/posthorn',
      notifyAfterSeconds: 5,
      smtpHost: 'smtp.example.com',
      smtpPort: 465,
      smtpTls: 'implicit',
      smtpUser: 'posthorn',
      smtpPassword: 'p w=\'"#',
      smtpFrom: 'no-reply+hooks@example.com',
      vapidPrivateKey: VAPID_KEY,
    })
  })

  for (const [name, reason, values] of [
    [
      'temporalAddress',
      'must be host:port',
      ['temporal', '127.0.0.1', '::1', 'https://temporal:7233', 'a:b', 'a:0', 'a:65536'],
    ],
    [
      'publicUrl',
      'must be an http:// or https:// URL',
      ['hooks.example.com', 'ftp://hooks.example.com', 'https://', 'javascript:alert(1)'],
    ],
    [
      'publicUrl',
      'must be a plain URL: no user, query or fragment',
      ['https://a:b@hooks.example.com', 'https://hooks.example.com/?x=1', 'https://hooks.example.com/#x'],
    ],
    ['notifyAfterSeconds', 'must be a whole number from 1 to 86400', ['0', '86401', '5m', '-5']],
    ['smtpPort', 'must be a whole number from 1 to 65535', ['0', '65536', 'smtp']],
    ['smtpTls', 'must be one of starttls, implicit, none', ['STARTTLS', 'true', 'ssl']],
    [
      'smtpFrom',
      'must be a plain e-mail address',
      [
        'Posthorn <hooks@example.com>',
        'a@x.example, b@y.example',
        'a@x.example\r\nBcc: b@y.example',
        'hooks',
      ],
    ],
    [
      'vapidPrivateKey',
      'must be a private key of P-256: 43 characters of base64url',
      ['A'.repeat(43), VAPID_KEY.slice(1), `${VAPID_KEY}A`, `${VAPID_KEY}=`, VAPID_KEY.replaceAll('-', '+')],
    ],
  ] as const) {
    const { variable } = SETTINGS[name]
    it(`refuse an invalid ${variable}, with the reason and without the value`, () => {
      for (const value of values)
        expect(configProblemsOf({ [variable]: value }, [name]), value).to.deep.equal([
          `${variable} ${reason}`,
        ])
    })
  }
})

describe('POSTHORN_FRAME_ANCESTORS', () => {
  it('holds origins', () => {
    expect(parseFrameAncestors('')).to.deep.equal([])
    expect(parseFrameAncestors('https://app.example.com, https://b.example:8443')).to.deep.equal([
      'https://app.example.com',
      'https://b.example:8443',
    ])
  })

  it('holds plain http on loopback only', () => {
    const origins = [
      'http://localhost:5173',
      'http://app.localhost',
      'http://127.0.0.1:8080',
      'http://[::1]:80',
    ]
    for (const origin of origins.slice(0, 3)) expect(parseFrameAncestors(origin)).to.deep.equal([origin])
    for (const text of ['http://app.example.com', 'http://10.0.0.1', 'http://localhost.example.com'])
      expect(() => parseFrameAncestors(text), text).to.throw('number 1')
  })

  for (const text of [
    '*',
    "'self'",
    "'none'",
    'null',
    'https:',
    'https://',
    'https://*.example.com',
    'https://app.example.com/',
    'https://app.example.com/path',
    'https://app.example.com?x',
    'https://app.example.com:443',
    'https://APP.example.com',
    'https://user@app.example.com',
    'https://app.example.com; script-src *',
    'https://app.example.com https://evil.example',
    'ftp://app.example.com',
    'app.example.com',
    'data:text/html,x',
    ',',
  ])
    it(`refuses ${text}`, () => {
      expect(() => parseFrameAncestors(text)).to.throw(/number 1/)
    })

  it('names the entries that are wrong by their number, without repeating them', () => {
    const text = 'https://a.example,hunter2,https://b.example,*'
    expect(() => parseFrameAncestors(text)).to.throw(/number 2, 4$/)
  })
})

describe('the settings of the brand', () => {
  const load = (env: Record<string, string>) => loadConfig(env, BRAND_SETTINGS)

  it('are those of Posthorn by default', () => {
    expect(load({})).to.deep.equal({ brandName: 'Posthorn', brandLogoFile: '', brandAccentColor: '' })
  })

  it('take a name in any script, and a colour of six digits', () => {
    const env = { BRAND_NAME: ' Zon & Zee 日本 ', BRAND_ACCENT_COLOR: '#B3261E' }
    expect(load(env)).to.include({ brandName: 'Zon & Zee 日本', brandAccentColor: '#b3261e' })
  })

  it('refuse every other name and colour, by the variable', () => {
    for (const name of ['x'.repeat(41), 'a\nb', 'a\u202eb', 'a\0b'])
      expect(() => load({ BRAND_NAME: name })).to.throw('BRAND_NAME must be plain text')
    for (const color of ['red', '#fff', '#0b57d0ff', '0b57d0', '#0b57dg', '#0b57d0;} *{display:none'])
      expect(() => load({ BRAND_ACCENT_COLOR: color })).to.throw('BRAND_ACCENT_COLOR must be a colour')
  })
})

const SECRET = 'Zr8vQ2mT5xWc9KbN4jHs7LdF1gYp6RtE'
const OTHER = 'b3Xq7Vn1Kz9Mw5Tc2Rj8Hf4Lp6Yd0SgA'

describe('POSTHORN_OPERATOR_KEYS', () => {
  it('holds names, secrets and scopes', () => {
    expect(parseOperatorKeys('')).to.deep.equal([])
    expect(parseOperatorKeys(`one:${SECRET}:manage+publish, two:${OTHER}:portal`)).to.deep.equal([
      { name: 'one', secret: SECRET, scopes: ['manage', 'publish'] },
      { name: 'two', secret: OTHER, scopes: ['portal'] },
    ])
  })

  it('is refused with every problem at once, by the number of the entry, without its text', () => {
    const text = [
      'a b:short:manage',
      `one:${SECRET}:manage+all`,
      `one:${OTHER}:manage+manage`,
      `three:${OTHER}:publish`,
      `four:${'ab'.repeat(20)}:publish`,
      SECRET,
      '',
    ].join(',')
    const { message } = refusalOf(text)
    for (const problem of [
      'number 1 needs a name',
      'number 1 needs a secret of 32',
      'number 2 needs different scopes',
      'number 3 needs different scopes',
      'number 3 has the name of an earlier one',
      'number 4 has the secret of an earlier one',
      'number 5 has a secret that is too easy to guess',
      'number 6 is not name:secret:scopes',
      'number 7 is not name:secret:scopes',
    ])
      expect(message).to.include(problem)
    for (const given of [SECRET, OTHER, 'short', 'abab']) expect(message).to.not.include(given)
  })
})

function refusalOf(text: string): Error {
  try {
    parseOperatorKeys(text)
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('the text was accepted')
}

import { expect } from 'chai'
import { ALL_SETTINGS, loadConfig, type Environment } from '../../../src/config/load.ts'
import { SETTINGS } from '../../../src/config/settings.ts'
import { problemsOf } from '../../helpers/cli/run-cli.ts'

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
        expect(problemsOf({ [variable]: value }, [name]), value).to.deep.equal([`${variable} ${reason}`])
    })
  }
})

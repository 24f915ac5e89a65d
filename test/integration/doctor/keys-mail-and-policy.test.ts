import { expect } from 'chai'
import { createSecretBox } from '../../../src/secret-box.ts'
import { TEST_VAPID_PRIVATE_KEY } from '../../helpers/database/factories.ts'
import { useSealedSecrets } from '../../helpers/database/use-sealed-secrets.ts'
import { createSlowMailServer, examine, settingsOf } from '../../helpers/doctor/doctored.ts'
import { createMailServer, type MailServer } from '../../helpers/notifications/mail-server.ts'

const OTHER_KEY = 'cd'.repeat(32)
const OPERATOR_SECRET = 'operator-secret-5f0c2b9a7d31e486'
const SMTP_PASSWORD = 'smtp-pw-90417'

describe('posthorn doctor examines keys, policy, mail and push', () => {
  const { database, webhook, put } = useSealedSecrets()
  const examineWith = (env: Record<string, string>) => examine(settingsOf(database.url, env))

  it('names each key that stored secrets need and the ring lacks', async () => {
    const { id } = await webhook()
    await put(id, createSecretBox([{ id: 'k0', key: Buffer.alloc(32, 7) }]).seal(id, 'x'))
    await webhook()
    const { problems, find } = await examineWith({})
    expect(problems).to.deep.equal(['error keys.missing'])
    expect(find('keys.missing').seen).to.include('1 secret(s) under key "k0"')
  })

  it('names a key with other bytes under the same id, and shows none of them', async () => {
    const { signingSecret } = await webhook()
    const { problems, find } = await examineWith({ POSTHORN_ENCRYPTION_KEYS: `test1:${OTHER_KEY}` })
    expect(problems).to.deep.equal(['error keys.wrong'])
    expect(find('keys.wrong').seen)
      .to.include('test1')
      .and.not.include(OTHER_KEY)
      .and.not.include(signingSecret)
  })

  it('names a secret that is not sealed, without showing it, and a rotation that has not ended', async () => {
    const { id } = await webhook()
    await put(id, 'plain-secret-of-a-webhook')
    await webhook()
    const ring = `k2:${OTHER_KEY},test1:${'ab'.repeat(32)}`
    const { problems, find } = await examineWith({ POSTHORN_ENCRYPTION_KEYS: ring })
    expect(problems).to.have.members(['error keys.unsealed', 'warning keys.rotation_unfinished'])
    expect(JSON.stringify(find('keys.unsealed'))).to.not.include('plain-secret')
  })

  it('names operator keys without their secrets', async () => {
    const { problems, find } = await examineWith({
      POSTHORN_OPERATOR_KEYS: `backend:${OPERATOR_SECRET}:manage+publish`,
    })
    expect(problems).to.deep.equal([])
    expect(find('keys.operator').seen).to.equal('backend (manage, publish)')
  })

  it('names what opens the outbound policy', async () => {
    const { status, problems, find } = await examineWith({
      POSTHORN_ALLOW_HTTP: 'true',
      POSTHORN_ALLOWED_CIDRS: '10.1.0.0/16',
    })
    expect(problems).to.deep.equal(['warning outbound.http_allowed', 'warning outbound.private_allowed'])
    expect(find('outbound.private_allowed').seen).to.include('10.1.0.0/16')
    expect(find('outbound.guard').level).to.equal('ok')
    expect(status).to.equal('error')
  })

  it('names a proxy that speaks TLS and is not trusted', async () => {
    const publicUrl = { POSTHORN_PUBLIC_URL: 'https://hooks.example.com' }
    const { problems, find } = await examineWith(publicUrl)
    expect(problems).to.deep.equal(['warning http.proxy_untrusted'])
    expect(find('http.proxy_untrusted').cure).to.include('TRUSTED_PROXIES')
    for (const env of [
      { ...publicUrl, TRUSTED_PROXIES: '10.0.0.5' },
      { POSTHORN_PUBLIC_URL: 'http://hooks.example.com' },
    ]) {
      const trusted = await examineWith(env)
      expect(trusted.problems).to.deep.equal([])
      expect(trusted.find('http.proxy').level).to.equal('ok')
    }
  })

  it('names every bad setting at once, and examines the rest', async () => {
    const { problems, skipped, find } = await examineWith({
      PORT: 'many',
      LOG_LEVEL: 'loud',
      POSTHORN_CATALOGUE: '/not/there.json',
      TEMPORAL_TLS_CA_FILE: '/not/there.pem',
      BRAND_LOGO_FILE: '/not/there.svg',
      POSTHORN_ENCRYPTION_KEYS: 'short',
      VAPID_PRIVATE_KEY: 'short',
    })
    const ofSettings = problems.filter((line) => line === 'error settings.invalid')
    expect(ofSettings).to.have.lengthOf(7)
    expect(skipped).to.include.members(['keys.encryption', 'push.key'])
    expect(find('keys.encryption').seen).to.include('POSTHORN_ENCRYPTION_KEYS is not valid')
    expect(find('database.migrations').level).to.equal('ok')
    const { find: finding } = await examineWith({ POSTHORN_CATALOGUE: '/not/there.json' })
    expect(finding('settings.invalid').seen).to.match(/^POSTHORN_CATALOGUE: /)
  })

  it('names a contact that push services cannot use', async () => {
    const unusable = await examineWith({ VAPID_PRIVATE_KEY: TEST_VAPID_PRIVATE_KEY })
    expect(unusable.problems).to.deep.equal(['warning push.subject_unusable'])
    const usable = await examineWith({
      VAPID_PRIVATE_KEY: TEST_VAPID_PRIVATE_KEY,
      SMTP_FROM: 'ops@example.com',
    })
    expect(usable.problems).to.deep.equal([])
    expect(usable.find('push.key').level).to.equal('ok')
  })

  describe('with a mail server', () => {
    let server: MailServer
    const smtp = (env: Record<string, string>) =>
      examineWith({ SMTP_HOST: server.host, SMTP_PORT: String(server.port), SMTP_TLS: 'none', ...env })

    before(async () => {
      server = await createMailServer({ auth: { user: 'posthorn', password: SMTP_PASSWORD } })
    })
    after(() => server.close())

    it('signs in, and sends no mail', async () => {
      const { problems, find } = await smtp({ SMTP_USER: 'posthorn', SMTP_PASSWORD })
      expect(problems).to.deep.equal([])
      expect(find('mail.server').seen).to.include('signs Posthorn in')
      expect(server.mails).to.deep.equal([])
    })

    it('names a refused password without showing it', async () => {
      const { problems, find } = await smtp({ SMTP_USER: 'posthorn', SMTP_PASSWORD: 'wrong-pw-1' })
      expect(problems).to.deep.equal(['error mail.login_refused'])
      expect(JSON.stringify(find('mail.login_refused'))).to.not.include('wrong-pw-1')
    })

    it('names a server that offers no TLS', async () => {
      for (const SMTP_TLS of ['starttls', 'implicit'])
        expect((await smtp({ SMTP_TLS })).problems).to.deep.equal(['error mail.tls_failed'])
    })

    it('names mails that leave this machine in clear', async () => {
      const { problems, find } = await examineWith({ SMTP_HOST: 'mail.invalid', SMTP_TLS: 'none' })
      expect(problems).to.deep.equal(['error mail.unreachable', 'warning mail.in_clear'])
      expect(find('mail.in_clear').seen).to.include('mail.invalid')
    })

    it('waits for a server that holds its greeting', async () => {
      const slow = await createSlowMailServer(6_000)
      const { problems } = await smtp({ SMTP_PORT: String(slow.port) }).finally(() => slow.close())
      expect(problems).to.deep.equal([])
    })

    it('names a server that refuses connections', async () => {
      const { problems } = await smtp({ SMTP_PORT: '1' })
      expect(problems).to.deep.equal(['error mail.unreachable'])
    })
  })
})

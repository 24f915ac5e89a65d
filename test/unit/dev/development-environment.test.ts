import { execFileSync } from 'node:child_process'
import { createECDH } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ALL_SETTINGS, loadConfig, type Config, type Environment } from '../../../src/config/load.ts'
import { OPERATOR_SCOPES } from '../../../src/domain/permissions.ts'
import { developmentEnvironment, writeEnvironmentFile } from '../../../src/dev/development-environment.ts'

describe('the environment of npm start', () => {
  let dataDir: string
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'posthorn-environment-'))
  })
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

  function configOf(env: Environment): Config {
    const complete = developmentEnvironment(env, {
      dataDir,
      databaseUrl: 'postgres://posthorn:p@127.0.0.1:5432/posthorn',
      temporalAddress: '127.0.0.1:7233',
      temporalUiUrl: 'http://127.0.0.1:8233',
      apiUrl: 'http://127.0.0.1:3001',
      mailbox: { port: 2525 },
    })
    return loadConfig(complete, ALL_SETTINGS)
  }

  it('sends mails to the mailbox, without the password of another server', () => {
    for (const SMTP_HOST of [undefined, '', ' ']) {
      const { smtpHost, smtpPort, smtpTls, smtpUser, smtpPassword } = configOf({
        SMTP_HOST,
        SMTP_PORT: '465',
        SMTP_TLS: 'implicit',
        SMTP_USER: 'ada',
        SMTP_PASSWORD: 'secret',
      })
      expect({ smtpHost, smtpPort, smtpTls, smtpUser, smtpPassword }).to.deep.equal({
        smtpHost: '127.0.0.1',
        smtpPort: 2525,
        smtpTls: 'none',
        smtpUser: '',
        smtpPassword: '',
      })
    }
  })

  it('leaves mails to the server that the environment names', () => {
    expect(configOf({ SMTP_HOST: 'smtp.example.com', SMTP_USER: 'ada' })).to.include({
      smtpHost: 'smtp.example.com',
      smtpPort: 587,
      smtpTls: 'starttls',
      smtpUser: 'ada',
    })
  })

  it('links to its own API, unless another address is given', () => {
    expect(configOf({}).publicUrl).to.equal('http://127.0.0.1:3001')
    expect(configOf({ POSTHORN_PUBLIC_URL: 'https://tunnel.example' }).publicUrl).to.equal(
      'https://tunnel.example',
    )
  })

  it('allows plain http on loopback only, unless http as a whole is allowed or refused', () => {
    const allowed = (env: Environment) => configOf(env).allowHttp
    expect(
      [{}, { POSTHORN_ALLOW_HTTP: 'true' }, { POSTHORN_ALLOW_HTTP: 'false' }].map(allowed),
    ).to.deep.equal(['loopback', true, false])
  })

  it('serves metrics on a free port of loopback, on a given one, or on none', () => {
    const metricsOf = (env: Environment) => {
      const { metricsHost, metricsPort } = configOf(env)
      return [metricsHost, metricsPort]
    }
    expect(metricsOf({})).to.deep.equal(['127.0.0.1', 0])
    expect(metricsOf({ METRICS_PORT: '9464', METRICS_HOST: '0.0.0.0' })).to.deep.equal(['127.0.0.1', 9464])
    expect(metricsOf({ METRICS_PORT: '' })).to.deep.equal(['127.0.0.1', null])
  })

  it('connects to its own servers whatever files the environment names, and reads its own keys from such files', () => {
    const file = join(dataDir, 'given')
    const vapidPrivateKey = Buffer.alloc(32, 7).toString('base64url')
    writeFileSync(file, vapidPrivateKey)
    const elsewhere = {
      DATABASE_URL_FILE: file,
      SMTP_PASSWORD_FILE: file,
      VAPID_PRIVATE_KEY_FILE: file,
      TEMPORAL_API_KEY_FILE: file,
      TEMPORAL_TLS_CA_FILE: file,
    }
    expect(configOf(elsewhere)).to.include({
      databaseUrl: 'postgres://posthorn:p@127.0.0.1:5432/posthorn',
      smtpPassword: '',
      vapidPrivateKey,
      temporalApiKey: '',
      temporalTlsCaFile: '',
    })
  })

  it('creates a VAPID key once, readable by its owner only', () => {
    const { vapidPrivateKey } = configOf({})
    const pair = createECDH('prime256v1')
    pair.setPrivateKey(Buffer.from(vapidPrivateKey, 'base64url'))
    expect(pair.getPublicKey()).to.have.length(65)
    expect(configOf({}).vapidPrivateKey).to.equal(vapidPrivateKey)
    expect(statSync(join(dataDir, 'vapid-private-key')).mode & 0o777).to.equal(0o600)
  })

  it('prefers the VAPID key that is given', () => {
    const given = Buffer.alloc(32, 7).toString('base64url')
    expect(configOf({ VAPID_PRIVATE_KEY: given }).vapidPrivateKey).to.equal(given)
  })

  it('creates an operator key with every scope once, readable by its owner only', () => {
    const [key, ...others] = configOf({}).operatorKeys
    expect(others).to.deep.equal([])
    expect(key).to.deep.include({ name: 'dev', scopes: OPERATOR_SCOPES })
    expect(configOf({ POSTHORN_OPERATOR_KEYS: '' }).operatorKeys).to.deep.equal([key])
    expect(statSync(join(dataDir, 'operator-key')).mode & 0o777).to.equal(0o600)
  })

  it('gives an operator key that was created before a scope was added this scope too', () => {
    const secret = `op_${'Zr8vQ2mT5xWc9KbN4jHs7LdF1gYp6RtE'.repeat(2).slice(0, 43)}`
    writeFileSync(join(dataDir, 'operator-key'), `dev:${secret}:manage+publish`)
    expect(configOf({}).operatorKeys.map(({ scopes }) => scopes)).to.deep.equal([OPERATOR_SCOPES])
  })

  it('prefers the operator keys that are given', () => {
    const given = 'mine:Zr8vQ2mT5xWc9KbN4jHs7LdF1gYp6RtE:manage'
    expect(configOf({ POSTHORN_OPERATOR_KEYS: given }).operatorKeys.map(({ name }) => name)).to.deep.equal([
      'mine',
    ])
  })

  it('is written to a file that gives a shell exactly these settings, readable by its owner only', () => {
    const file = writeEnvironmentFile(dataDir, {
      SMTP_PASSWORD: `it's "$HOME" \\ and\na line`,
      SMTP_USER: '',
      HOME: '/of/npm/start',
    })
    const print = `${process.execPath} -p 'JSON.stringify(process.env)'`
    const env = JSON.parse(
      execFileSync('sh', ['-euc', `set -a; . "$0"; ${print}`, file], {
        encoding: 'utf8',
        env: {
          ...process.env,
          HOME: '/of/the/shell',
          DATABASE_URL: 'postgres://elsewhere/x',
          DATABASE_URL_FILE: '/x',
        },
      }),
    ) as NodeJS.ProcessEnv
    expect(env).to.include({
      SMTP_PASSWORD: `it's "$HOME" \\ and\na line`,
      SMTP_USER: '',
      HOME: '/of/the/shell',
    })
    expect(env).not.to.have.any.keys('DATABASE_URL', 'DATABASE_URL_FILE')
    expect(statSync(file).mode & 0o777).to.equal(0o600)
  })

  it('refuses a file without a VAPID key, and does not print its content', () => {
    writeFileSync(join(dataDir, 'vapid-private-key'), 'half a key')
    expect(() => configOf({}))
      .to.throw(/vapid-private-key no longer contains a VAPID key/)
      .with.property('message')
      .that.does.not.include('half')
  })
})

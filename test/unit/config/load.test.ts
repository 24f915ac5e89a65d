import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ALL_SETTINGS, loadConfig, type Environment } from '../../../src/config/load.ts'
import { SETTINGS } from '../../../src/config/settings.ts'
import { configProblemsOf } from '../../helpers/cli/run-cli.ts'

const KEY = 'cd'.repeat(32)
const required: Environment = {
  DATABASE_URL: 'postgres://posthorn:p@db:5432/posthorn',
  POSTHORN_ENCRYPTION_KEYS: `first:${KEY}`,
}

describe('loadConfig', () => {
  it('defaults every setting except the database and the key ring', () => {
    expect(loadConfig(required, ALL_SETTINGS)).to.deep.include({
      databaseUrl: required['DATABASE_URL'],
      databasePoolSize: 20,
      host: '127.0.0.1',
      port: 3000,
      rateLimitManagement: 1_000,
      rateLimitPublish: 0,
      trustedProxies: [],
      webhooksPerOrganisation: 100,
      logLevel: 'info',
      temporalAddress: '127.0.0.1:7233',
      firstAttempt: 'overflow',
      attemptTimeoutMs: 15_000,
      publicUrl: '',
      notifyAfterSeconds: 300,
      smtpHost: '',
      smtpPort: 587,
      smtpTls: 'starttls',
      smtpFrom: 'posthorn@localhost',
      vapidPrivateKey: '',
      allowHttp: false,
      allowedCidrs: [],
    })
    expect(configProblemsOf({})).to.have.lengthOf(2)
  })

  it('treats an empty or blank variable as not set', () => {
    const empty = Object.fromEntries(Object.values(SETTINGS).map(({ variable }) => [variable, '  ']))
    expect(loadConfig({ ...empty, ...required }, ALL_SETTINGS)).to.deep.equal(
      loadConfig(required, ALL_SETTINGS),
    )
    expect(configProblemsOf(empty)).to.have.lengthOf(2)
  })

  it('ignores white space around a value', () => {
    expect(loadConfig({ PORT: ' 8080\n' }, ['port'])).to.deep.equal({ port: 8080 })
  })

  it('reads only the settings it is asked for', () => {
    expect(loadConfig({ ...required, PORT: 'nonsense' }, ['databaseUrl'])).to.have.all.keys('databaseUrl')
  })

  describe('a secret in a file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-secrets-'))
    const file = join(folder, 'database-url')
    writeFileSync(file, `${required['DATABASE_URL']}\n`)
    after(() => rmSync(folder, { recursive: true }))

    it('is read from there', () => {
      expect(loadConfig({ DATABASE_URL_FILE: file }, ['databaseUrl'])).to.deep.equal({
        databaseUrl: required['DATABASE_URL'],
      })
    })

    it('is refused beside the variable itself', () => {
      expect(configProblemsOf({ ...required, DATABASE_URL_FILE: file })).to.deep.equal([
        'DATABASE_URL is set, and so is DATABASE_URL_FILE: one of them is enough',
      ])
    })

    it('is missed where the file is, without naming its path', () => {
      const away = { DATABASE_URL_FILE: join(folder, 'away') }
      expect(configProblemsOf(away, ['databaseUrl'])).to.deep.equal([
        'DATABASE_URL cannot be read from the file that DATABASE_URL_FILE names (ENOENT)',
      ])
    })

    it('is only looked for where the setting is a secret', () => {
      expect(loadConfig({ PORT_FILE: file }, ['port'])).to.deep.equal({ port: 3000 })
    })
  })

  it('returns a frozen configuration', () => {
    expect(loadConfig(required, ALL_SETTINGS)).to.be.frozen
  })

  it('accepts every default it states', () => {
    for (const { variable, fallback, parse } of Object.values(SETTINGS)) {
      if (fallback !== undefined) expect(() => parse(fallback) as unknown, variable).to.not.throw()
    }
  })

  it('names every problem at once', () => {
    const problems = configProblemsOf({ PORT: '70000', LOG_LEVEL: 'loud', POSTHORN_ALLOW_HTTP: 'yes' })
    expect(problems).to.have.lengthOf(5)
    for (const variable of [
      'DATABASE_URL',
      'POSTHORN_ENCRYPTION_KEYS',
      'PORT',
      'LOG_LEVEL',
      'POSTHORN_ALLOW_HTTP',
    ])
      expect(problems.filter((problem) => problem.startsWith(`${variable} `))).to.have.lengthOf(1)
  })

  it('reads which receivers may be plain http: all, none, or those on this machine', () => {
    const parsed = (POSTHORN_ALLOW_HTTP: string) =>
      loadConfig({ POSTHORN_ALLOW_HTTP }, ['allowHttp']).allowHttp
    expect(['true', 'false', 'loopback', ''].map(parsed)).to.deep.equal([true, false, 'loopback', false])
    expect(configProblemsOf({ POSTHORN_ALLOW_HTTP: 'local' }, ['allowHttp'])).to.deep.equal([
      'POSTHORN_ALLOW_HTTP must be true, false or loopback',
    ])
  })

  it('explains the purpose of a missing variable', () => {
    expect(configProblemsOf({})[0]).to.include(SETTINGS.databaseUrl.description)
  })

  it('repeats no value in its messages: it might be a secret', () => {
    const value = 'sup3r-s3cret/value'
    const env = Object.fromEntries(Object.values(SETTINGS).map(({ variable }) => [variable, value]))
    const problems = configProblemsOf(env)
    expect(problems.length).to.be.greaterThan(10)
    expect(problems.join('\n')).to.not.include('s3cret')
  })

  for (const value of ['-1', '1.5', '1e3', '0x10', '3000 3001', 'abc', '65536', '99999999999', '\u0663']) {
    it(`refuses "${value}" as a port`, () => {
      expect(configProblemsOf({ PORT: value }, ['port'])).to.deep.equal([
        'PORT must be a whole number from 0 to 65535',
      ])
    })
  }

  for (const value of ['mysql://db/posthorn', 'db:5432', 'posthorn', 'postgres:posthorn']) {
    it(`refuses "${value}" as the URL of the database`, () => {
      expect(configProblemsOf({ DATABASE_URL: value }, ['databaseUrl'])).to.deep.equal([
        'DATABASE_URL must be a postgres:// URL',
      ])
    })
  }

  describe('the key ring', () => {
    const ring = (text: string) =>
      loadConfig({ POSTHORN_ENCRYPTION_KEYS: text }, ['encryptionKeys']).encryptionKeys

    it('holds the keys in the order given', () => {
      const keys = ring(`new:${'01'.repeat(32)}, old:${KEY}`)
      expect(keys.map(({ id }) => id)).to.deep.equal(['new', 'old'])
      expect(keys[1]?.key.toString('hex')).to.equal(KEY)
    })

    for (const [title, text] of [
      ['a key without an id', KEY],
      ['an empty id', `:${KEY}`],
      ['an id that would break the stored form', `a|b:${KEY}`],
      ['a short key', `a:${KEY.slice(2)}`],
      ['a long key', `a:${KEY}00`],
      ['upper-case digits', `a:${KEY.toUpperCase()}`],
      ['other characters', `a:${'zz'.repeat(32)}`],
      ['a comma too much', `a:${KEY},`],
    ] as const) {
      it(`refuses ${title}`, () => {
        expect(configProblemsOf({ POSTHORN_ENCRYPTION_KEYS: text }, ['encryptionKeys'])[0]).to.match(
          /^POSTHORN_ENCRYPTION_KEYS must be id:key pairs/,
        )
      })
    }

    it('refuses one id twice', () => {
      expect(
        configProblemsOf({ POSTHORN_ENCRYPTION_KEYS: `a:${KEY},a:${'01'.repeat(32)}` }, ['encryptionKeys']),
      ).to.deep.equal(['POSTHORN_ENCRYPTION_KEYS names one key id twice'])
    })
  })

  describe('the trusted proxies', () => {
    const parsed = (TRUSTED_PROXIES: string) =>
      loadConfig({ TRUSTED_PROXIES }, ['trustedProxies']).trustedProxies

    it('accept addresses and ranges, and default to none', () => {
      expect(parsed('10.0.3.0/24, 192.0.2.7,2001:db8::1')).to.deep.equal([
        '10.0.3.0/24',
        '192.0.2.7/32',
        '2001:db8::1/128',
      ])
      expect(parsed('')).to.deep.equal([])
    })

    for (const [value, reason] of [
      ['1', /number 1$/],
      ['10.0.0.1,proxy.example', /number 2$/],
      ['10.0.0.1,', /number 2$/],
      ['0.0.0.0/0', /number 1$/],
      ['0.0.0.0/1,128.0.0.0/1', /trusts more than proxies: 0\.0\.0\.0\/1, 128\.0\.0\.0\/1 /],
      ['2000::/3', /trusts more than proxies: 2000::\/3 /],
      ['::1/64', /trusts more than proxies: ::1\/64 /],
    ] as const)
      it(`refuse ${value}`, () => {
        const [problem, ...others] = configProblemsOf({ TRUSTED_PROXIES: value }, ['trustedProxies'])
        expect(problem).to.match(reason)
        expect(others).to.deep.equal([])
      })
  })

  describe('the allowed private ranges', () => {
    it('accept a list', () => {
      const env = { POSTHORN_ALLOWED_CIDRS: '10.1.0.0/16, fd00::/8' }
      expect(loadConfig(env, ['allowedCidrs']).allowedCidrs).to.deep.equal(['10.1.0.0/16', 'fd00::/8'])
    })

    for (const range of ['0.0.0.0/0', '::/0', '10.0.0.1', '10.0.0.0/33', 'localhost/8', '10.0.0.0/8,']) {
      it(`refuse ${range}`, () => {
        expect(configProblemsOf({ POSTHORN_ALLOWED_CIDRS: range }, ['allowedCidrs'])).to.have.lengthOf(1)
      })
    }

    for (const [ranges, offending] of [
      ['0.0.0.0/1,128.0.0.0/1', ['0.0.0.0/1', '128.0.0.0/1']],
      ['::/1, 8000::/1', ['::/1', '8000::/1']],
      ['10.0.0.0/8,172.0.0.0/7', ['172.0.0.0/7']],
      ['fd00::/8,2000::/3', ['2000::/3']],
      ['fc00::/6', ['fc00::/6']],
      ['127.255.255.255/1', ['127.255.255.255/1']],
      // Each holds ::ffff:0:0/96, and with it all of IPv4.
      ['::1/64,fd00::/8', ['::1/64']],
      ['::fffe:0:0/95', ['::fffe:0:0/95']],
    ] as const) {
      it(`refuse ${ranges}, which allows more than private networks, and name the range that does`, () => {
        const problems = configProblemsOf({ POSTHORN_ALLOWED_CIDRS: ranges }, ['allowedCidrs'])
        expect(problems).to.have.lengthOf(1)
        expect(problems[0]).to.include(`opens more than private networks: ${offending.join(', ')} (`)
      })
    }

    it('refuse many narrow ranges that together cover a large part of all addresses', () => {
      const blocks = (count: number) =>
        Array.from({ length: count }, (_, index) => `${index}.0.0.0/8`).join(',')
      expect(configProblemsOf({ POSTHORN_ALLOWED_CIDRS: blocks(256) }, ['allowedCidrs'])).to.have.lengthOf(1)
      expect(configProblemsOf({ POSTHORN_ALLOWED_CIDRS: blocks(17) }, ['allowedCidrs'])).to.have.lengthOf(1)
      const some = `${blocks(16)},10.0.0.0/8,10.1.0.0/16,10.0.0.0/8`
      expect(SETTINGS.allowedCidrs.parse(some), 'what overlaps counts once').to.have.lengthOf(19)
    })

    it('accept every private network', () => {
      const all = '10.0.0.0/8,100.64.0.0/10,127.0.0.0/8,169.254.0.0/16,172.16.0.0/12,192.168.0.0/16'
      const env = { POSTHORN_ALLOWED_CIDRS: `${all},::1/128,::/96,fc00::/7,fd00::/8,fe80::/16,64:ff9b::/96` }
      expect(loadConfig(env, ['allowedCidrs']).allowedCidrs).to.have.lengthOf(12)
    })

    it('name the invalid range', () => {
      const env = { POSTHORN_ALLOWED_CIDRS: '10.0.0.0/8,x,fd00::/8,y' }
      expect(configProblemsOf(env, ['allowedCidrs'])[0]).to.match(/number 2, 4$/)
    })
  })
})

describe('the limits of the API', () => {
  it('are read from the environment, and 0 disables a rate limit', () => {
    const env = {
      RATE_LIMIT_MANAGEMENT: '0',
      RATE_LIMIT_PUBLISH: '20000',
      WEBHOOKS_PER_ORGANISATION: '1',
    }
    expect(loadConfig({ ...required, ...env }, ALL_SETTINGS)).to.include({
      rateLimitManagement: 0,
      rateLimitPublish: 20_000,
      webhooksPerOrganisation: 1,
    })
  })

  for (const [name, min, max] of [
    ['rateLimitManagement', 0, 1_000_000],
    ['rateLimitPublish', 0, 1_000_000],
    ['webhooksPerOrganisation', 1, 100_000],
    ['publishBacklogLimit', 0, 1_000_000_000],
  ] as const) {
    const { variable } = SETTINGS[name]
    it(`refuse an invalid ${variable}`, () => {
      for (const value of [String(min - 1), String(max + 1), '100/s', 'unlimited'])
        expect(configProblemsOf({ [variable]: value }, [name]), value).to.deep.equal([
          `${variable} must be a whole number from ${min} to ${max}`,
        ])
    })
  }
})

describe('the port of the metrics', () => {
  const portOf = (METRICS_PORT: string) => loadConfig({ METRICS_PORT }, ['metricsPort']).metricsPort

  it('is unset by default, and 0 picks a free port', () => {
    expect(loadConfig({}, ['metricsPort', 'metricsHost'])).to.deep.equal({
      metricsPort: null,
      metricsHost: '127.0.0.1',
    })
    expect(['', '0', '9464'].map(portOf)).to.deep.equal([null, 0, 9464])
  })
})

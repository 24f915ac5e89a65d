import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { secretOf } from '../../helpers/api/operator.ts'
import { runCli } from '../../helpers/cli/run-cli.ts'
import { useSeedFiles } from '../../helpers/cli/seed-files.ts'
import { TEST_KEY_RING } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { createRefusingPooler } from '../../helpers/doctor/doctored.ts'

const PASSWORD = 'pa55w0rd-in-clear'

describe('posthorn without what it needs', function () {
  const database = useDatabase()
  const files = useSeedFiles()
  const changed = (parts: Partial<Record<'username' | 'password' | 'pathname', string>>): string =>
    Object.assign(new URL(database.url), parts).href

  /** What a command prints that fails with 1: no stack trace, no password, nothing on standard output. */
  const failure = async (args: string[], env: Record<string, string>): Promise<string> => {
    const { code, stdout, stderr } = await runCli(args, env)
    expect([code, stdout], stderr).to.deep.equal([1, ''])
    expect(stderr)
      .to.not.include(PASSWORD)
      .and.not.match(/^\s+at /m)
    return stderr
  }

  const noDatabase: [title: string, url: () => string, said: RegExp][] = [
    [
      'that cannot be reached',
      () => `postgres://u:${PASSWORD}@127.0.0.1:1/x`,
      /^No connection to PostgreSQL at 127\.0\.0\.1:1\/x, the address in DATABASE_URL: .*ECONNREFUSED.*\nNothing listens at/,
    ],
    [
      'on an unknown host',
      () => `postgres://u:${PASSWORD}@db.invalid/x`,
      /at db\.invalid:5432\/x, the address in DATABASE_URL: .*\nThe name of that host is unknown/,
    ],
    [
      'that refuses the password',
      () => changed({ password: PASSWORD }),
      /DATABASE_URL: password authentication failed.*\nCorrect the user or the password/,
    ],
    [
      'that does not exist',
      () => changed({ pathname: '/nowhere' }),
      /"nowhere" does not exist\.\nCreate that database/,
    ],
  ]
  for (const [index, [title, url, said]] of noDatabase.entries())
    it(`says in words what is wrong with a database ${title}`, async () => {
      const env = { DATABASE_URL: url(), POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING }
      // Every command where there is no server, one of them else: they connect in one way.
      const commands = [['migrate'], ['seed', files.write({ organisations: [] })], ['worker']]
      for (const args of index === 0 ? commands : commands.slice(0, 1))
        expect(await failure(args, env), args.join(' ')).to.match(said)
    })

  it('has a relay behind a pooler connect to PostgreSQL itself', async () => {
    const pooler = await createRefusingPooler()
    const url = `postgres://u:${PASSWORD}@127.0.0.1:${pooler.port}/x`
    const env = { RELAY_DATABASE_URL: url, RELAY_OPERATOR_KEY: secretOf('publisher') }
    expect(await failure(['relay'], env).finally(() => pooler.close()))
      .to.match(/RELAY_DATABASE_URL: .*startup parameter.*\nConnect to PostgreSQL itself/)
      .and.not.include('DATABASE_POOLER')
  })

  it('names the setting of a port that is taken, and of an address that is not of this machine', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const port = String((server.address() as AddressInfo).port)
    const env = { DATABASE_URL: database.url, POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING, LOG_LEVEL: 'silent' }
    try {
      expect(await failure(['api'], { ...env, PORT: port })).to.equal(
        `Port ${port} (API) is taken. Stop what uses it or set PORT to another.\n`,
      )
      expect(await failure(['worker'], { ...env, METRICS_PORT: port })).to.equal(
        `Port ${port} (metrics) is taken. Stop what uses it or set METRICS_PORT to another.\n`,
      )
      expect(await failure(['api'], { ...env, PORT: '0', HOST: '203.0.113.9' })).to.match(
        /^203\.0\.113\.9 \(API\) cannot be listened on: .*\. Set HOST to an address of this machine\.\n$/,
      )
    } finally {
      server.close()
    }
  })

  it('says what is wrong with a file, and how it was given', async () => {
    const cases: [file: string, content: string | null, problem: RegExp][] = [
      [files.pathOf('missing.json'), null, /: there is no such file \(ENOENT\)$/m],
      [files.pathOf('.'), null, /: is a folder, not a file$/m],
      [files.pathOf('bad.json'), `{\n"organisations": [{"key": "${PASSWORD}"},\n}`, /: is not valid JSON/m],
    ]
    const env = { DATABASE_URL: database.url }
    for (const [index, [file, content, problem]] of cases.entries()) {
      if (content !== null) writeFileSync(file, content)
      // Each way once: the files are read in one way.
      const ways = [
        [['catalogue', 'check', file], {}, 'The catalogue (FILE) is not valid:'],
        [['openapi'], { POSTHORN_CATALOGUE: file }, 'The catalogue (POSTHORN_CATALOGUE) is not valid:'],
        [['seed', file], {}, 'The seed file is not valid:'],
      ] as const
      const [args, more, given] = ways[index]!
      const { code, stdout, stderr } = await runCli(args, { ...env, ...more })
      expect([code, stdout], stderr).to.deep.equal([2, ''])
      expect(stderr).to.match(problem).and.include(`${given}\n  - ${file}: `).and.not.include(PASSWORD)
    }
  })
})

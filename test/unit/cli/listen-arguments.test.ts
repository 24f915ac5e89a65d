import { expect } from 'chai'
import { readListenCommand } from '../../../src/cli/listen/listen-arguments.ts'
import { argumentsOf } from '../../helpers/cli/run-cli.ts'
import { problemsOf } from '../../helpers/problems-of.ts'

const KEY = 'phk_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG'
const ENV = { POSTHORN_KEY: KEY }
const TO = '--forward-to http://localhost:4000/hook'

const read = (args: string[], env: Record<string, string>) =>
  readListenCommand(argumentsOf(['listen', ...args]), env)
const parse = (line: string, env: Record<string, string> = ENV) =>
  read(line === '' ? [] : line.split(' '), env)

describe('the arguments of posthorn listen', () => {
  it('need no more than a key and where to forward', () => {
    expect(parse(TO)).to.deep.equal({
      apiUrl: 'http://127.0.0.1:3000',
      apiKey: KEY,
      organisationId: null,
      events: null,
      forwardTo: 'http://localhost:4000/hook',
      secret: null,
      printsBodies: false,
    })
  })

  it('are taken from the environment where they are not given', () => {
    const env = { ...ENV, POSTHORN_URL: 'https://posthorn.example.com/', POSTHORN_ORG: 'org_demo' }
    expect(parse(TO, env)).to.include({ apiUrl: 'https://posthorn.example.com', organisationId: 'org_demo' })
    const given = '--api http://localhost:3001/base/ --org org_other --key another-key'
    expect(parse(`${TO} ${given}`, env)).to.include({
      apiUrl: 'http://localhost:3001/base',
      organisationId: 'org_other',
      apiKey: 'another-key',
    })
  })

  it('take event keys, a fixed secret and --print', () => {
    const more = '--events invoice:paid,customer:created --secret local-secret --print'
    expect(parse(`${TO} ${more}`)).to.include({
      events: 'invoice:paid,customer:created',
      secret: 'local-secret',
      printsBodies: true,
    })
    expect(parse('--print')).to.include({ forwardTo: null, printsBodies: true })
    expect(read(['--print', '--events', 'a:b, c:d'], ENV)).to.include({ events: 'a:b,c:d' })
  })

  it('may lead anywhere that the user of this machine chooses', () => {
    for (const url of [
      'http://127.0.0.1:4000/',
      'http://[::1]:4000/',
      'http://192.168.1.20:8080/hook?token=1',
      'http://app:4000/',
      'https://example.com/hook',
    ])
      expect(parse(`--forward-to ${url}`), url).to.include({ forwardTo: url })
  })

  /** What is refused of the options of any command is tried with `posthorn api-key`. */
  const bad: [line: string, env: Record<string, string>, problems: (string | RegExp)[]][] = [
    ['', {}, ['--key or POSTHORN_KEY has to be given', '--forward-to or --print has to be given']],
    ['--print', { POSTHORN_KEY: '' }, ['--key or POSTHORN_KEY has to be given']],
    ['--print --secret local-secret', ENV, ['--secret needs --forward-to']],
    [
      '--api ftp://x --org a/b --key a\u0007b --events a,,b --forward-to http://u:p@localhost:4000/ --secret short',
      {},
      [
        /^--api must be the address of a Posthorn/,
        /^--key must be an API key/,
        '--org must be 1 to 64 of A-Z a-z 0-9 _ -',
        /^--events must be event keys/,
        /^--forward-to is refused as the URL of a webhook would be: The URL must not hold a user name/,
        '--secret must be 8 to 200 visible ASCII characters',
      ],
    ],
    [
      '--print',
      { POSTHORN_KEY: 'two words', POSTHORN_URL: 'nowhere', POSTHORN_ORG: '?' },
      [/^POSTHORN_URL must be/, /^POSTHORN_KEY must be/, /^POSTHORN_ORG must be/],
    ],
    ['--forward-to localhost:4000', ENV, [/^--forward-to is refused .*must start with/]],
    ['--forward-to http://localhost:22/', ENV, [/^--forward-to is refused .*port/]],
  ]
  for (const [line, env, problems] of bad) {
    it(`are refused as "${line}", each problem in words`, () => {
      const found = problemsOf(() => parse(line, env))
      expect(found).to.have.length(problems.length)
      problems.forEach((problem, index) => {
        if (typeof problem === 'string') expect(found).to.include(problem)
        else
          expect(
            found.some((text) => problem.test(text)),
            `${problem} ${found[index]}`,
          ).to.equal(true)
      })
    })
  }

  for (const api of [
    `http://${KEY}@localhost:3000`,
    `http://localhost:3000/?key=${KEY}`,
    `http://localhost:3000/#${KEY}`,
  ])
    it(`refuse a key in the URL: ${api.replace(KEY, '…')}`, () => {
      expect(problemsOf(() => parse(`--print --api ${api}`)).join()).to.match(/^--api must have no user name/)
      expect(problemsOf(() => parse('--print', { ...ENV, POSTHORN_URL: api })).join()).to.match(
        /^POSTHORN_URL must have no/,
      )
    })

  it('repeat no value: it could be the key', () => {
    for (const line of [
      `--print ${KEY}`,
      `--print=${KEY}`,
      `--org ${KEY}/`,
      `--api ${KEY}`,
      `--forward-to ${KEY}`,
    ])
      expect(problemsOf(() => parse(line)).join(), line).to.not.include(KEY)
  })
})

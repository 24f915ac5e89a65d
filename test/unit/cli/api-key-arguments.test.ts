import { expect } from 'chai'
import { readApiKeyCommand } from '../../../src/cli/api-key-arguments.ts'
import { apiKeyPrefix, generateApiKey } from '../../../src/accounts/api-keys.ts'
import { argumentsOf } from '../../helpers/cli/run-cli.ts'
import { problemsOf } from '../../helpers/problems-of.ts'

const NOW = new Date('2026-06-01T12:00:00Z')
const ID = '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c'

const read = (args: string[]) => readApiKeyCommand(argumentsOf(['api-key', ...args]), NOW)
const parse = (line: string) => read(line.split(' '))
const create = (more: string) => parse(`create --organisation org_a --member mem_a --name ci${more}`)

describe('the arguments of posthorn api-key', () => {
  it('default to a key that does not expire', () => {
    const wanted = { kind: 'create', organisationId: 'org_a', memberId: 'mem_a', name: 'ci' }
    expect(create('')).to.deep.equal({ ...wanted, expiresAt: null })
    expect(parse('create --name=ci --member=mem_a --organisation=org_a')).to.deep.equal({
      ...wanted,
      expiresAt: null,
    })
  })

  for (const [more, expiresAt] of [
    [' --expires 2027-01-01T00:00:00Z', '2027-01-01T00:00:00.000Z'],
    [' --expires 2027-01-01T00:30+01:00', '2026-12-31T23:30:00.000Z'],
    [' --expires 2028-02-29T00:00:00.5Z', '2028-02-29T00:00:00.500Z'],
    [' --expires-in-days 1', '2026-06-02T12:00:00.000Z'],
    [' --expires-in-days=365', '2027-06-01T12:00:00.000Z'],
  ] as const) {
    it(`take${more}`, () => {
      expect(create(more)).to.deep.include({ expiresAt: new Date(expiresAt) })
    })
  }

  it('take a name of several words, or one that begins with dashes', () => {
    const args = ['create', '--organisation', 'org_a', '--member', 'mem_a']
    expect(read([...args, '--name', 'Zon – kassa 2'])).to.include({
      name: 'Zon – kassa 2',
    })
    expect(read([...args, '--name=--ci'])).to.include({ name: '--ci' })
  })

  it('list all of an organisation, or of one member, as a table or as JSON', () => {
    const all = { kind: 'list', organisationId: 'org_a', memberId: null, json: false }
    expect(parse('list --organisation org_a')).to.deep.equal(all)
    expect(parse('list --organisation org_a --member mem_a --json')).to.deep.equal({
      ...all,
      memberId: 'mem_a',
      json: true,
    })
  })

  it('choose the key to revoke by its id, or by member and name', () => {
    const wanted = { kind: 'revoke', organisationId: 'org_a' }
    expect(parse(`revoke --organisation org_a --id ${ID}`)).to.deep.equal({ ...wanted, choice: { id: ID } })
    expect(parse('revoke --organisation org_a --member mem_a --name ci')).to.deep.equal({
      ...wanted,
      choice: { memberId: 'mem_a', name: 'ci' },
    })
  })

  const bad: [line: string, problems: string[]][] = [
    ['', ['it takes one of create, list, revoke first']],
    ['explode', ['explode is not one of create, list, revoke']],
    ['creat --name ci', ['creat is not one of create, list, revoke; did you mean create?']],
    ['--organisation org_a create', ['it takes one of create, list, revoke first']],
    ['create', ['--organisation is missing', '--member is missing', '--name is missing']],
    ['list', ['--organisation is missing']],
    ['create --organisation --member mem_a --name', ['--organisation needs a value', '--name needs a value']],
    ['list --organisation=', ['--organisation needs a value']],
    ['list --organisation org_a --organisation org_b', ['--organisation stands there twice']],
    ['list --organisation org/a', ['--organisation must be 1 to 64 of A-Z a-z 0-9 _ -']],
    ['list --organisation org_a --json=yes', ['--json takes no value']],
    ['list --organisation org_a stray', ['word 3 after "api-key list" is one too many']],
    ['list --organisation org_a --colour', ['--colour is not an option of it']],
    ['list --organisation org_a -json', ['-json is not an option of it; did you mean --json?']],
    [
      'list --organization org_a',
      ['--organization is not an option of it; did you mean --organisation?', '--organisation is missing'],
    ],
    [
      'list --organisation org_a --name=ci -x',
      ['--name is not an option of it', '-x is not an option of it'],
    ],
    [
      'create --organisation a* --member b* --name \u0007 --expires never --expires-in-days 0',
      [
        '--organisation must be 1 to 64 of A-Z a-z 0-9 _ -',
        '--member must be 1 to 64 of A-Z a-z 0-9 _ -',
        '--name must be up to 200 characters, without control characters and without those that set the direction of text',
        '--expires and --expires-in-days exclude each other',
        '--expires-in-days must be a whole number from 1 to 3650',
        '--expires must be a time with its zone, such as 2027-01-01T00:00:00Z',
      ],
    ],
    ['revoke --organisation org_a', ['either --id or --member and --name have to be given']],
    ['revoke --organisation org_a --name ci', ['--member is missing']],
    [`revoke --organisation org_a --id ${ID} --name ci`, ['--id stands without --member and --name']],
    [
      'revoke --organisation org_a --id ci',
      ['--id must be the id of a key, as posthorn api-key list shows it'],
    ],
  ]
  for (const [line, problems] of bad) {
    it(`are refused as "${line}", each problem in words`, () => {
      expect(problemsOf(() => parse(line))).to.deep.equal(problems)
    })
  }

  for (const time of [
    '2027-01-01',
    '2027-01-01T00:00:00',
    '2027-02-29T00:00:00Z',
    '2027-13-01T00:00:00Z',
    '2027-01-01T25:00:00Z',
    '9999-12-31T23:59-23:59',
    '1798761600',
    'tomorrow',
  ]) {
    it(`are refused with the time ${time}`, () => {
      expect(problemsOf(() => create(` --expires ${time}`))[0]).to.match(/^--expires must be a time/)
    })
  }

  it('are refused with a time in the past', () => {
    expect(problemsOf(() => create(' --expires 2026-06-01T12:00:00Z'))).to.deep.equal([
      '--expires must lie in the future',
    ])
  })

  it('repeat no value: it could be a key', () => {
    const key = generateApiKey()
    for (const line of [`revoke ${key}`, `revoke --key=${key}`, `revoke --id ${key}`, `list --json=${key}`])
      expect(problemsOf(() => parse(line)).join(), line).to.not.include(key.slice(4))
  })
})

describe('generateApiKey', () => {
  it('returns phk_ and 256 random bits in letters and digits', () => {
    const keys = Array.from({ length: 500 }, generateApiKey)
    for (const key of keys) expect(key).to.match(/^phk_[A-Za-z0-9]{43}$/)
    expect(new Set(keys).size).to.equal(500)
    expect(new Set(keys.join('').replaceAll('_', '')).size).to.equal(62)
  })

  it('reveals little in its prefix', () => {
    expect(apiKeyPrefix('phk_abcdefgh')).to.equal('phk_abcd')
  })
})

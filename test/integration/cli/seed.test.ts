import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { seedFromFile } from '../../../src/cli/seed.ts'
import { runCli } from '../../helpers/cli/run-cli.ts'
import { an, camping, KEY, seedOf, useSeededApi, withMember } from '../../helpers/cli/seed-files.ts'
import { rejectedProblemsOf } from '../../helpers/problems-of.ts'

describe('posthorn seed', () => {
  const suite = useSeededApi()
  const { database, files, seed } = suite

  async function everything(): Promise<unknown[]> {
    return database.dataSource.query(
      `SELECT o::text AS row FROM organisation o UNION ALL SELECT m::text FROM member m
       UNION ALL SELECT (k.organisation_id, k.member_id, k.name, k.prefix, k.hash, k.revoked_at)::text FROM api_key k
       ORDER BY row`,
    )
  }

  async function statusFor(apiKey: string): Promise<number> {
    return (await suite.api.call('GET', '/api/orgs/org_camping/webhooks', { apiKey })).status
  }

  it('creates organisations, members and keys that can call the API', async () => {
    const { summary, newKeys } = await seed(seedOf(camping))
    expect(summary).to.equal('Seeded 1 organisation(s) with 1 member(s).')
    expect(newKeys).to.deep.equal([])
    expect(await statusFor(KEY)).to.equal(200)
  })

  it('changes nothing when it is repeated', async () => {
    await seed(seedOf(camping))
    const before = await everything()
    await seed(seedOf(camping))
    expect(await everything()).to.deep.equal(before)
  })

  it('updates existing organisations and members', async () => {
    await seed(seedOf(camping))
    await seed(withMember({ permissions: ['invoice:read'] }))
    expect(await statusFor(KEY)).to.equal(403)
  })

  it('accepts every permission that a catalogue may name', async () => {
    await seed(withMember({ permissions: ['webhook:read', 'payroll_2:read-all', 'nfc-tag:read', 'a:b'] }))
    expect(await statusFor(KEY)).to.equal(200)
  })

  it('fills in defaults', async () => {
    const { id, name, email } = camping
    await seed(seedOf({ id, name, email, members: [{ id: 'mem_bo', name: 'Bo', email: 'bo@zon.example' }] }))
    const rows = JSON.stringify(await everything())
    expect(rows).to.include('Europe/Brussels')
    expect(rows).to.include('mem_bo')
  })

  it('generates a key where none is given, and prints it once', async () => {
    const keyless = withMember({ apiKeys: [{ name: 'made' }] })
    const { newKeys } = await seed(keyless)
    expect(newKeys).to.have.lengthOf(1)
    expect(newKeys[0]).to.include({ organisationId: 'org_camping', memberId: 'mem_an', name: 'made' })
    expect(await statusFor(newKeys[0]!.key)).to.equal(200)
    expect((await seed(keyless)).newKeys).to.deep.equal([])
    expect(await statusFor(newKeys[0]!.key)).to.equal(200)
  })

  it('keeps no key in clear', async () => {
    await seed(seedOf(camping))
    expect(JSON.stringify(await everything())).to.not.include(KEY.slice(8))
  })

  it('leaves a revoked key revoked', async () => {
    await seed(seedOf(camping))
    await database.dataSource.query('UPDATE api_key SET revoked_at = now()')
    await seed(seedOf(camping))
    expect(await statusFor(KEY)).to.equal(401)
  })

  it('applies all of a file or nothing', async () => {
    await seed(seedOf(camping))
    const before = await everything()
    const other = { ...camping, id: 'org_other', members: [{ ...an, id: 'mem_other' }] }
    expect(await rejectedProblemsOf(seed(seedOf(other)))).to.deep.equal([
      'the key "ci" of mem_other in org_other exists under another name',
    ])
    expect(await everything()).to.deep.equal(before)
  })

  const bad: [title: string, content: unknown, problems: string[]][] = [
    ['no JSON', '{', ['is not valid JSON']],
    ['a comma too many', '{"organisations": [\n{},\n]}', ['is not valid JSON']],
    ['no object', [], [': / must be an object']],
    ['no organisations', {}, ['/organisations is required']],
    [
      'bad fields everywhere',
      seedOf({
        id: 'a/b',
        name: '',
        email: 'x@y@z',
        supportEmail: 5,
        timeZone: 'Europe/Atlantis',
        colour: 'red',
        members: [
          {
            id: 'mem_1',
            name: 'A\u0000n',
            email: 'an@zon.example\nBcc: x',
            permissions: ['all'],
            fullAccess: 'yes',
          },
        ],
      }),
      [
        '/organisations/0/colour is not',
        '/organisations/0/id ',
        '/organisations/0/name ',
        '/organisations/0/email ',
        '/organisations/0/supportEmail ',
        '/organisations/0/timeZone ',
        '/organisations/0/members/0/name ',
        '/organisations/0/members/0/email ',
        '/organisations/0/members/0/permissions/0 ',
        '/organisations/0/members/0/fullAccess ',
      ],
    ],
    [
      'a key of 31 characters',
      withMember({ apiKeys: [{ name: 'ci', key: KEY.slice(0, 31) }] }),
      ['/members/0/apiKeys/0/key must be 32 to 200 visible ASCII characters'],
    ],
    [
      'a key that is easy to guess',
      withMember({ apiKeys: [{ name: 'ci', key: 'a'.repeat(32) }] }),
      ['/members/0/apiKeys/0/key is too easy to guess'],
    ],
    [
      'an organisation that stands there twice',
      seedOf(camping, { ...camping, members: [] }),
      ['/organisations/1/id '],
    ],
    [
      'a member who stands there twice',
      seedOf({ ...camping, members: [an, { ...an, apiKeys: [] }] }),
      ['/members/1/id '],
    ],
    [
      'a key that stands there twice',
      seedOf(camping, { ...camping, id: 'org_other' }),
      ['/organisations/1/members/0/apiKeys/0/key '],
    ],
    [
      'a name of a key that stands there twice',
      withMember({ apiKeys: [{ name: 'ci' }, { name: 'ci' }] }),
      ['/members/0/apiKeys/1/name '],
    ],
  ]
  for (const [title, content, expected] of bad) {
    it(`refuses a file with ${title}, and names every problem and nothing else`, async () => {
      const problems = await rejectedProblemsOf(seed(content))
      for (const part of expected)
        expect(
          problems.filter((problem) => problem.includes(part)),
          part,
        ).to.not.be.empty
      expect(problems.filter((problem) => !expected.some((part) => problem.includes(part)))).to.deep.equal([])
      expect(problems.join()).to.not.include(KEY)
      expect(await everything()).to.deep.equal([])
    })
  }

  it('accepts the short keys of the demo organisation only when it seeds that organisation', async () => {
    const demo = fileURLToPath(new URL('../../../src/dev/demo-seed.json', import.meta.url))
    const problems = await rejectedProblemsOf(seedFromFile(database.url, demo))
    expect(problems).to.have.lengthOf(2)
    for (const problem of problems) expect(problem).to.match(/apiKeys\/0\/key must be 32 to 200 visible/)
    await seedFromFile(database.url, demo, { isDemo: true })
    const { json, status } = await suite.api.call('GET', '/api/session', {
      apiKey: 'phk_demo_full_access_0001',
    })
    expect([status, (json as { member?: { id: string } }).member?.id]).to.deep.equal([200, 'mem_demo'])
  })

  it('prints a new key once, and its summary each time, as a command', async () => {
    const file = files.write(withMember({ apiKeys: [{ name: 'made' }] }))
    const env = { DATABASE_URL: database.url }
    const first = await runCli(['seed', file], env)
    expect(first).to.include({ code: 0, stderr: '' })
    const key = /shown only now: (\S+)\n/.exec(first.stdout)?.[1] ?? ''
    expect(await statusFor(key)).to.equal(200)
    const second = await runCli(['seed', file], env)
    expect(second).to.deep.equal({
      code: 0,
      stdout: 'Seeded 1 organisation(s) with 1 member(s).\n',
      stderr: '',
    })
  })
})

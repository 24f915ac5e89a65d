import { expect } from 'chai'
import { readApiKeyCommand } from '../../../src/cli/api-key-arguments.ts'
import { runApiKeyCommand } from '../../../src/cli/api-key.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'
import { argumentsOf, runCli } from '../../helpers/cli/run-cli.ts'
import { useApi } from '../../helpers/api/api.ts'

type Outcome = { code: number; stdout: string; stderr: string }

const KEY = /^phk_[A-Za-z0-9]{43}\n$/

describe('posthorn api-key', () => {
  const suite = useApi()
  let member: TestMember

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })

  /** The command without a process of its own. */
  const run = async (line: string): Promise<Outcome> => {
    const outcome = { code: 0, stdout: '', stderr: '' }
    const wanted = readApiKeyCommand(argumentsOf(['api-key', ...line.split(' ')]), new Date())
    const output = {
      print: (text: string) => void (outcome.stdout += `${text}\n`),
      note: (text: string) => void (outcome.stderr += `${text}\n`),
    }
    try {
      await runApiKeyCommand(suite.database.dataSource, wanted, output)
    } catch (error) {
      outcome.code = 1
      output.note((error as Error).message)
    }
    return outcome
  }
  const own = () => `--organisation ${member.organisationId} --member ${member.memberId}`
  const create = async (more = ''): Promise<string> => {
    const { code, stdout, stderr } = await run(`create ${own()} --name ci${more}`)
    expect([code, stderr.includes('shown only now')], stderr).to.deep.equal([0, true])
    expect(stdout).to.match(KEY)
    return stdout.trim()
  }
  const listed = async (): Promise<Record<string, unknown>[]> =>
    JSON.parse((await run(`list ${own()} --json`)).stdout) as Record<string, unknown>[]
  const statusFor = async (apiKey: string): Promise<number> =>
    (await suite.api.call('GET', `/api/orgs/${member.organisationId}/webhooks`, { apiKey })).status

  describe('create', () => {
    it('prints a key that works, alone on standard output, and keeps only its digest', async () => {
      const key = await create()
      expect(await statusFor(key)).to.equal(200)
      const kept = await suite.database.dataSource.query<{ row: string }[]>(
        'SELECT k::text AS row FROM api_key k',
      )
      expect(JSON.stringify(kept)).to.not.include(key.slice(8))
    })

    it('writes an audit entry, as its revocation does, once and without the key', async () => {
      const key = await create()
      for (let times = 0; times < 2; times++) await run(`revoke ${own()} --name ci`)
      const entries = await suite.database.dataSource.query<{ action: string; row: string }[]>(
        'SELECT action, a::text AS row FROM audit_entry a WHERE organisation_id = $1 ORDER BY id',
        [member.organisationId],
      )
      expect(entries.map(({ action }) => action)).to.deep.equal(['api_key.created', 'api_key.revoked'])
      expect(JSON.stringify(entries)).to.not.include(key.slice(8))
    })

    it('prints the owner and the expiry, but not the key, on standard error', async () => {
      const { stdout, stderr } = await run(`create ${own()} --name ci --expires 2099-01-01T00:00:00Z`)
      expect(stderr)
        .to.include(`New API key "ci" of "${member.memberId}" in "${member.organisationId}"`)
        .and.include('expires at 2099-01-01T00:00:00.000Z')
      expect(stderr).to.not.include(stdout.trim().slice(8))
      expect((await listed()).at(-1)).to.include({ name: 'ci', expiresAt: '2099-01-01T00:00:00.000Z' })
    })

    it('refuses a name in use, and permits that of a revoked key', async () => {
      const first = await create()
      const again = await run(`create ${own()} --name ci`)
      expect(again).to.include({ code: 1, stdout: '' })
      expect(again.stderr).to.include('has an API key "ci" already')
      expect(await statusFor(first)).to.equal(200)
      await run(`revoke ${own()} --name ci`)
      const second = await create()
      expect([await statusFor(first), await statusFor(second)]).to.deep.equal([401, 200])
      const named = (await listed()).filter(({ name }) => name === 'ci')
      expect(named.map(({ revokedAt }) => revokedAt === null)).to.deep.equal([false, true])
    })

    it('gives the name to one of several concurrent calls, and an error to the others', async () => {
      const results = await Promise.all(Array.from({ length: 4 }, () => run(`create ${own()} --name race`)))
      expect(results.map(({ code }) => code).toSorted()).to.deep.equal([0, 1, 1, 1])
    })

    it('names what does not exist', async () => {
      const nowhere = await run('create --organisation org_none --member mem_none --name ci')
      expect(nowhere).to.include({
        code: 1,
        stdout: '',
        stderr: 'There is no organisation "org_none".\n',
      })
      const nobody = await run(`create --organisation ${member.organisationId} --member mem_none --name ci`)
      expect(nobody.code).to.equal(1)
      expect(nobody.stderr).to.include('There is no member "mem_none"')
    })
  })

  describe('list', () => {
    it('shows every key of the organisation in a table, revoked ones too, and no value', async () => {
      const key = await create(' --expires 2099-01-01T00:00:00Z')
      await statusFor(key)
      await run(`revoke ${own()} --name test`)
      const other = await createMember(suite.database.dataSource, { organisationId: member.organisationId })
      const { code, stdout, stderr } = await run(`list --organisation ${member.organisationId}`)
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' })
      const [head = '', ...lines] = stdout.trimEnd().split('\n')
      const cells = (line: string) => line.split(/ {2,}/)
      expect(cells(head)).to.deep.equal([
        ...['ID', 'PREFIX', 'NAME', 'MEMBER', 'CREATED', 'LAST USED', 'EXPIRES', 'REVOKED'],
      ])
      expect(lines).to.have.length(3)
      const time = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/
      const ci = cells(lines.find((line) => line.includes(key.slice(0, 8))) ?? '')
      expect(ci.slice(1, 4)).to.deep.equal([`${key.slice(0, 8)}…`, 'ci', member.memberId])
      expect(ci[4]).to.match(time)
      expect(ci[5]).to.match(time)
      expect(ci.slice(6)).to.deep.equal(['2099-01-01T00:00:00Z', '-'])
      const revoked = lines.filter((line) => time.test(cells(line)[7] ?? ''))
      expect(revoked.map((line) => cells(line)[2])).to.deep.equal(['test'])
      expect(stdout).to.include(other.memberId)
      expect(stdout).to.not.include(key.slice(8))
    })

    it('gives the same as JSON, of one member where one is named', async () => {
      await createMember(suite.database.dataSource, { organisationId: member.organisationId })
      const [key, ...others] = await listed()
      expect(others).to.deep.equal([])
      expect(key).to.include({
        name: 'test',
        memberId: member.memberId,
        prefix: member.apiKey.slice(0, 8),
        lastUsedAt: null,
        expiresAt: null,
        revokedAt: null,
      })
      expect(key).to.have.all.keys(
        ...['id', 'prefix', 'name', 'memberId', 'createdAt', 'lastUsedAt', 'expiresAt', 'revokedAt'],
      )
    })

    it('prints no control characters of a name', async () => {
      await suite.database.dataSource.query('UPDATE api_key SET name = $2 WHERE member_id = $1', [
        member.memberId,
        'a\u001b[2J\u009b\u202eb\n',
      ])
      const { stdout } = await run(`list ${own()}`)
      expect(stdout).to.include('  a\\u001b[2J\\u009b\\u202eb\\u000a  ')
      expect(stdout.trimEnd().split('\n')).to.have.length(2)
    })

    it('reports that there is none, or no such organisation', async () => {
      await suite.database.dataSource.query('DELETE FROM api_key WHERE member_id = $1', [member.memberId])
      expect(await run(`list ${own()}`)).to.deep.equal({
        code: 0,
        stdout: '',
        stderr: 'There are no API keys.\n',
      })
      expect(await run(`list ${own()} --json`)).to.include({ code: 0, stdout: '[]\n' })
      expect(await run('list --organisation org_none')).to.include({
        code: 1,
        stderr: 'There is no organisation "org_none".\n',
      })
    })
  })

  describe('revoke', () => {
    it('refuses the key from the next request on, and is harmless when repeated', async () => {
      const key = await create()
      expect(await statusFor(key)).to.equal(200)
      const first = await run(`revoke ${own()} --name ci`)
      expect(first).to.include({ code: 0, stderr: '' })
      expect(first.stdout).to.include(`${key.slice(0, 8)}… "ci" of "${member.memberId}" is revoked`)
      expect(await statusFor(key)).to.equal(401)
      expect(await statusFor(member.apiKey)).to.equal(200)
      const before = await listed()
      const second = await run(`revoke ${own()} --name ci`)
      expect(second.code).to.equal(0)
      expect(second.stdout).to.include('was revoked before, at 20')
      expect(await listed()).to.deep.equal(before)
    })

    it('accepts the id of a key of its own organisation only', async () => {
      const [key] = await listed()
      const id = String(key?.['id'])
      const other = await createMember(suite.database.dataSource)
      const foreign = await run(`revoke --organisation ${other.organisationId} --id ${id}`)
      expect(foreign).to.include({ code: 1, stdout: '' })
      expect(foreign.stderr).to.include(`There is no API key with the id ${id}`)
      expect(await statusFor(member.apiKey)).to.equal(200)
      expect((await run(`revoke --organisation ${member.organisationId} --id ${id}`)).code).to.equal(0)
      expect(await statusFor(member.apiKey)).to.equal(401)
    })

    it('names what does not exist', async () => {
      for (const [line, words] of [
        [`revoke ${own()} --name nothing`, 'There is no API key "nothing"'],
        [`revoke --organisation ${member.organisationId} --member m --name ci`, 'There is no member "m"'],
        ['revoke --organisation org_none --member m --name ci', 'There is no organisation "org_none"'],
      ] as const) {
        const { code, stdout, stderr } = await run(line)
        expect([code, stdout], line).to.deep.equal([1, ''])
        expect(stderr).to.include(words)
      }
    })
  })

  it('runs as a command, and exits with 1 when something does not exist', async () => {
    const env = { DATABASE_URL: suite.database.url }
    const args = ['--organisation', member.organisationId, '--member', member.memberId, '--name', 'shell']
    const created = await runCli(['api-key', 'create', ...args], env)
    expect(created.code, created.stderr).to.equal(0)
    expect(created.stdout).to.match(KEY)
    expect(await statusFor(created.stdout.trim())).to.equal(200)
    expect(await runCli(['api-key', 'list', '--organisation', 'org_none'], env)).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: 'There is no organisation "org_none".\n',
    })
  })
})

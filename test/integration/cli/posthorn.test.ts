import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import pg from 'pg'
import { builtInCatalogue } from '../../../src/catalogue/built-in.ts'
import { COMMAND_NAMES } from '../../../src/cli/commands.ts'
import { openApiDocument } from '../../../src/http/openapi.ts'
import { routes } from '../../../src/http/routes/index.ts'
import { SETTINGS } from '../../../src/config/settings.ts'
import { runCli } from '../../helpers/cli/run-cli.ts'
import { testServers } from '../../helpers/runner/servers.ts'

describe('posthorn', () => {
  describe('migrate', () => {
    const { adminUrl } = testServers()
    const name = `test_${randomUUID().replaceAll('-', '')}`
    const env = { DATABASE_URL: Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href }
    let admin: pg.Client

    before(async () => {
      admin = new pg.Client({ connectionString: adminUrl })
      await admin.connect()
      await admin.query(`CREATE DATABASE ${name}`)
    })
    after(async () => {
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
      await admin.end()
    })

    it('migrates an empty database, and does nothing the second time', async () => {
      const first = await runCli(['migrate'], env)
      expect(first).to.include({ code: 0, stderr: '' })
      expect(first.stdout).to.match(/^Applied: Initial\d+/)
      expect(await runCli(['migrate'], env)).to.deep.equal({
        code: 0,
        stdout: 'The database is up to date.\n',
        stderr: '',
      })
    })

    it('ends with 1, and without the password, when the database cannot be reached', async () => {
      const { code, stderr } = await runCli(['migrate'], {
        DATABASE_URL: 'postgres://u:s3cret@127.0.0.1:1/x',
      })
      expect(code).to.equal(1)
      expect(stderr).to.match(/\S/)
      expect(stderr).to.not.include('s3cret')
    })
  })

  it('prints the OpenAPI document of the routes', async () => {
    const { code, stdout } = await runCli(['openapi'])
    expect(code).to.equal(0)
    expect(JSON.parse(stdout)).to.deep.equal(
      JSON.parse(JSON.stringify(openApiDocument(routes, builtInCatalogue))),
    )
  })

  for (const args of [[], ['explode'], ['serve', '--port=1']]) {
    it(`ends with 2 and says how it is used when called as "posthorn ${args.join(' ')}"`, async () => {
      const { code, stdout, stderr } = await runCli(args)
      expect([code, stdout]).to.deep.equal([2, ''])
      expect(stderr).to.match(/\S/)
      if (args.length < 2) for (const name of COMMAND_NAMES) expect(stderr).to.include(`  ${name} `)
    })
  }

  it('names every variable that is missing or bad at once, and ends with 2', async () => {
    const { code, stdout, stderr } = await runCli(['serve'], { PORT: 'many', LOG_LEVEL: 'loud' })
    expect([code, stdout]).to.deep.equal([2, ''])
    for (const { variable } of [
      SETTINGS.databaseUrl,
      SETTINGS.encryptionKeys,
      SETTINGS.port,
      SETTINGS.logLevel,
    ])
      expect(stderr).to.include(`- ${variable} `)
    expect(stderr.trim().split('\n')).to.have.lengthOf(5)
  })
})

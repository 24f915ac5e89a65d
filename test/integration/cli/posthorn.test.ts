import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import pg from 'pg'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { COMMANDS } from '../../../src/cli/command-line/commands.ts'
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

    it('is asked for by the commands that need it', async () => {
      const file = join(mkdtempSync(join(tmpdir(), 'posthorn-seed-')), 'seed.json')
      writeFileSync(file, '{"organisations":[{"id":"a","name":"A","email":"a@example.com"}]}')
      for (const args of [
        ['seed', file],
        ['api-key', 'list', '--organisation', 'a'],
      ])
        expect(await runCli(args, env)).to.deep.equal({
          code: 1,
          stdout: '',
          stderr: 'The database is not up to date: run `posthorn migrate` first.\n',
        })
      rmSync(dirname(file), { recursive: true })
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
  })

  it('prints the OpenAPI document of the routes', async () => {
    const { code, stdout } = await runCli(['openapi'])
    expect(code).to.equal(0)
    expect(JSON.parse(stdout)).to.deep.equal(
      JSON.parse(JSON.stringify(openApiDocument(routes, builtInCatalogue))),
    )
  })

  it('ends quietly where the reader of its output is gone', async () => {
    const child = spawn(process.execPath, [testServers().posthorn, 'openapi'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stdout.destroy()
    const [stderr] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect({ code: child.exitCode, stderr }).to.deep.equal({ code: 0, stderr: '' })
  })

  it('lists its commands, with exit code 2 where none is given', async () => {
    const [asked, bare] = await Promise.all([runCli(['--help']), runCli([])])
    expect(asked).to.include({ code: 0, stderr: '' })
    expect(bare).to.deep.equal({ code: 2, stdout: '', stderr: asked.stdout })
    for (const { name, summary } of COMMANDS)
      expect(asked.stdout).to.match(new RegExp(`^  ${name} +${summary}$`, 'm'))
  })

  for (const [line, problem] of [
    ['migarte', 'migarte is not a command; did you mean migrate?'],
    ['explode', 'explode is not a command\n'],
    ['--versoin', '--versoin is not an option; did you mean --version?'],
    ['help API-keys', 'API-keys is not a command; did you mean api or api-key?'],
    ['serve --port=1', '--port is not an option of it\n'],
    ['seed', 'FILE is missing'],
    ['seed one two', 'word 2 after "seed" is one too many'],
    ['catalogue check one --databse', '--databse is not an option of it; did you mean --database?'],
  ] as [string, string][])
    it(`ends with 2 and says what is wrong when called as "posthorn ${line}"`, async () => {
      const { code, stdout, stderr } = await runCli(line.split(' '))
      expect([code, stdout]).to.deep.equal([2, ''])
      expect(stderr)
        .to.include(`\n  - ${problem}`)
        .and.match(/\nposthorn [a-z- ]*--help says how\.\n$/)
    })

  it('repeats no word that could be a key or could write to the terminal', async () => {
    for (const word of [`phk_${'x'.repeat(43)}`, '\u001b[2Jserve', `--${'k'.repeat(40)}`])
      for (const args of [[word], ['seed', 'one', word], ['openapi', word]]) {
        const { code, stderr } = await runCli(args)
        expect([code, stderr.includes(word.slice(2))], args.join(' ')).to.deep.equal([2, false])
      }
  })

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

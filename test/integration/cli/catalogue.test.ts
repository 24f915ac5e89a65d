import { writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { warnOfMissingKeys } from '../../../src/process/start-checks.ts'
import { argumentsOf, runCli, type CliResult } from '../../helpers/cli/run-cli.ts'
import { useSeedFiles } from '../../helpers/cli/seed-files.ts'
import { createMember, createWebhookRow, TEST_KEY_RING } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { readDocument } from '../../helpers/documents/documents.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

const BAD = { eventKeys: [{ key: 'order', meaning: 'x' }, { key: 'order:paid' }] }
const BAD_PROBLEMS = ['/eventKeys/0/key must match', '/eventKeys/1/meaning is required']

describe('posthorn catalogue', () => {
  const database = useDatabase()
  const files = useSeedFiles()
  const check = (file: string, ...options: string[]): Promise<CliResult> =>
    runCli(['catalogue', 'check', file, ...options], { DATABASE_URL: database.url })
  const [, example = ''] = /```json\n([\s\S]*?)```/.exec(readDocument('docs/catalogue.md')) ?? []

  it('prints the built-in catalogue, which check accepts', async () => {
    const { code, stdout } = await runCli(['catalogue', 'print'])
    expect(code).to.equal(0)
    expect(JSON.parse(stdout)).to.deep.equal(
      JSON.parse(JSON.stringify({ eventKeys: builtInCatalogue.eventKeys })),
    )
    const checked = await check(files.write(stdout))
    expect([checked.code, checked.stderr]).to.deep.equal([0, ''])
    expect(checked.stdout).to.match(/ is a catalogue of 91 event key\(s\)\.\n$/)
  })

  it('accepts the example of docs/catalogue.md', async () => {
    const { code, stdout, stderr } = await check(files.write(example))
    expect([code, stderr]).to.deep.equal([0, ''])
    expect(stdout).to.include('3 event key(s)')
  })

  it('names every problem of a file with exit code 2, and so does every command that uses it', async () => {
    const file = files.write(BAD)
    const env = {
      DATABASE_URL: database.url,
      POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING,
      POSTHORN_CATALOGUE: file,
    }
    for (const result of [
      await check(file),
      await runCli(['serve'], env),
      await runCli(['worker'], env),
      await runCli(['openapi'], { POSTHORN_CATALOGUE: file }),
    ]) {
      expect([result.code, result.stdout]).to.deep.equal([2, ''])
      for (const problem of BAD_PROBLEMS) expect(result.stderr).to.include(`${file}: ${problem}`)
    }
  })

  it('names the schemas that cannot be checked fast, and why', async () => {
    const properties = {
      code: { type: 'string', pattern: '^(a+)+$' },
      tags: { type: 'array', uniqueItems: true },
    }
    const eventKeys = [
      { key: 'order:paid', meaning: 'x', schema: { type: 'object', properties }, example: {} },
    ]
    const { code, stdout } = await check(files.write({ eventKeys }))
    expect(code).to.equal(0)
    expect(stdout).to.match(/order:paid cannot be checked fast.*\/properties\/code\/pattern .*\^\(a\+\)\+\$/)
    expect(stdout).to.match(/order:paid cannot be checked fast.*\/properties\/tags\/uniqueItems /)
    expect((await check(files.write(example))).stdout).to.not.include('cannot be checked fast')
  })

  it('refuses what is no file, is too large, or is not UTF-8', async () => {
    const large = files.write(`{"eventKeys":[],"x":"${'x'.repeat(2 * 1024 * 1024)}"}`)
    const binary = files.pathOf('binary.json')
    writeFileSync(binary, Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))
    for (const [file, problem] of [
      ['/dev/zero', 'is not a file'],
      [large, 'is larger than 2 MB'],
      [binary, 'is not UTF-8'],
    ] as const) {
      const { code, stderr } = await check(file)
      expect([code, stderr.includes(problem)], `${file}: ${stderr}`).to.deep.equal([2, true])
    }
  })

  it('takes nothing else, with exit code 2', async () => {
    for (const args of [[], ['show'], ['--x']])
      expect(() => argumentsOf(['catalogue', ...args]), args.join(' ')).to.throw()
    for (const args of [['check'], ['check', 'a', 'b'], ['print', 'a'], ['print', '--database']])
      expect(argumentsOf(['catalogue', ...args]).problems, args.join(' ')).to.have.length(1)
    const { code, stdout, stderr } = await runCli(['catalogue', 'print', 'a'])
    expect([code, stdout]).to.deep.equal([2, ''])
    expect(stderr).to.not.equal('')
    const help = await runCli(['catalogue', '--help'])
    expect([help.code, help.stdout.includes('posthorn catalogue check FILE')]).to.deep.equal([0, true])
  })

  it('has the OpenAPI document name the keys of POSTHORN_CATALOGUE', async () => {
    const { stdout } = await runCli(['openapi'], { POSTHORN_CATALOGUE: files.write(example) })
    expect(stdout).to.include('order:shipped').and.not.include('nfc-tag:presented')
  })

  describe('with webhooks that subscribe to keys that are gone', () => {
    before(async () => {
      const { dataSource } = database
      for (const keys of [['order:shipped', 'call:created'], ['call:created'], ['*'], ['invoice:paid']]) {
        const { organisationId } = await createMember(dataSource)
        const url = 'https://a.example.com/'
        await createWebhookRow(dataSource, { organisationId, url, subscribedEventKeys: keys })
      }
      await dataSource.query(
        `UPDATE webhook SET deleted_at = now() WHERE subscribed_event_keys = '{invoice:paid}'`,
      )
    })

    it('reports the keys and how many webhooks with --database, by exit code 1', async () => {
      const { code, stderr } = await check(files.write(example), '--database')
      expect([code, stderr]).to.deep.equal([1, 'call:created is missing: 2 webhook(s) subscribe to it\n'])
    })

    it('warns of them at start, and changes nothing', async () => {
      const warnings: unknown[] = []
      const logger = { ...silentLogger, warn: (fields: unknown) => void warnings.push(fields) }
      const webhooks = (): Promise<unknown> => database.dataSource.query('SELECT * FROM webhook ORDER BY id')
      const before = await webhooks()
      await warnOfMissingKeys(database.dataSource, builtInCatalogue, logger)
      expect(warnings).to.deep.equal([
        { event: 'catalogue.keys_missing', count: 1, keys: [{ eventKey: 'order:shipped', webhooks: 1 }] },
      ])
      expect(await webhooks()).to.deep.equal(before)
    })
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { QueryFailedError } from 'typeorm'
import { createLogger, type Logger, type LogLevel } from '../../../src/observability/logger.ts'
import { eventually } from '../../helpers/eventually.ts'

const SECRET = 'f00dfeed'.repeat(8)

describe('the log', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-log-'))
  })
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  /** The content of a log file after `write`, as text, up to the line `last`. */
  async function logged(write: (logger: Logger) => void, level: LogLevel = 'info'): Promise<string> {
    const file = join(folder, 'logs', 'posthorn.log')
    const logger = createLogger({ level, file })
    write(logger)
    logger.error({ event: 'last' }, 'last')
    return eventually(() => {
      const text = readFileSync(file, 'utf8')
      expect(text).to.include('"event":"last"')
      return text
    })
  }

  it('writes JSON lines with the event first, into a folder that it creates', async () => {
    const text = await logged((logger) => logger.info({ event: 'delivery.attempted', deliveryId: 'd1' }))
    const [line = ''] = text.split('\n')
    expect(JSON.parse(line)).to.include({
      event: 'delivery.attempted',
      deliveryId: 'd1',
      msg: 'delivery.attempted',
    })
  })

  it('omits lines below its level', async () => {
    const text = await logged((logger) => logger.info({ event: 'quiet' }, 'quiet'), 'warn')
    expect(text).to.not.include('quiet')
  })

  for (const [title, fields] of [
    ['a signing secret', { signingSecret: SECRET }],
    ['a sealed secret', { secret: SECRET }],
    ['an API key', { apiKey: SECRET }],
    ['a key', { key: SECRET }],
    ['the header of a request', { headers: { 'x-api-key': SECRET } }],
    ['a request', { request: { headers: { 'x-api-key': SECRET } } }],
    ['a webhook', { webhook: { id: 'w1', secret: SECRET, signingSecret: SECRET } }],
    ['a configuration', { config: { databaseUrl: SECRET, encryptionKeys: SECRET, temporalApiKey: SECRET } }],
  ] as const) {
    it(`holds no secret when ${title} is logged`, async () => {
      const text = await logged((logger) => logger.info({ event: 'careless', ...fields }, 'careless'))
      expect(text).to.include('careless')
      expect(text).to.include('[redacted]')
      expect(text).to.not.include(SECRET)
    })
  }

  for (const [title, name] of [
    ['', 'err'],
    [' by the Temporal SDK', 'error'],
  ] as const)
    it(`describes a failed query${title} without its parameters`, async () => {
      const driverError = Object.assign(new Error('duplicate key value'), {
        code: '23505',
        detail: `Key (${SECRET})`,
      })
      const error = new QueryFailedError('INSERT INTO webhook VALUES ($1)', [SECRET], driverError)
      const text = await logged((logger) =>
        logger.error({ event: 'http.failed', [name]: error }, 'http.failed'),
      )
      const shown = (JSON.parse(text.split('\n')[0] ?? '') as Record<string, Record<string, string>>)[name]!
      expect(shown).to.include({ type: 'QueryFailedError', message: 'duplicate key value', code: '23505' })
      expect(shown['stack']).to.include('logger.test')
      expect(text).to.not.include(SECRET)
    })

  it('names the cause of an error', async () => {
    const error = new Error('could not start', { cause: new TypeError('no address') })
    const text = await logged((logger) =>
      logger.warn({ event: 'temporal.unavailable', err: error }, 'temporal.unavailable'),
    )
    expect(JSON.parse(text.split('\n')[0] ?? '')).to.have.nested.property('err.cause.message', 'no address')
  })

  it('survives a full disk by dropping lines', async function () {
    if (!existsSync('/dev/full')) this.skip()
    const script = join(folder, 'log.mjs')
    const module = new URL('../../../src/observability/logger.ts', import.meta.url).href
    writeFileSync(
      script,
      `const { createLogger } = await import(${JSON.stringify(module)})
       const logger = createLogger({ level: 'info' })
       for (let line = 0; line < 3; line++) logger.info({ event: 'line' }, 'line')
       setTimeout(() => process.exit(7), 100)`,
    )
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, ['--import', 'tsx', script], { stdio: ['ignore', full, 'inherit'] })
    const [code] = (await once(child, 'exit')) as [number | null]
    closeSync(full)
    expect(code).to.equal(7)
  })
})

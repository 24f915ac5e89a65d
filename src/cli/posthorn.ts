import { parseArgs } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import { ALL_SETTINGS, ConfigError, loadConfig } from '../config/load.ts'
import { createLogger } from '../observability/logger.ts'
import { createSecretBox } from '../secret-box.ts'
import { API_KEY_USAGE, parseApiKeyArguments } from './api-key-arguments.ts'
import { runApiKeyCommand } from './api-key.ts'
import { runCatalogueCommand } from './catalogue-command.ts'
import { loadCatalogue } from './catalogue-file.ts'
import { describeError } from './describe-error.ts'
import { COMMAND_NAMES, COMMANDS, type CommandName } from './commands.ts'
import { migrate } from './migrate.ts'
import { createShutdown, STOP_MARGIN_MS } from '../shutdown.ts'
import { createStack } from './shutdown-stack.ts'
import { onStopSignal } from './on-stop-signal.ts'
import { describeReEncryption, reEncrypt } from './re-encrypt.ts'
import { seedFromFile } from './seed.ts'
import type { Roles } from './service.ts'
import { UsageError } from './usage-error.ts'
import { withDatabase } from './with-database.ts'

const USAGE_ERROR = 2

function usage(): string {
  const width = Math.max(...COMMAND_NAMES.map((name) => name.length))
  const lines = COMMAND_NAMES.map((name) => `  ${name.padEnd(width)}  ${COMMANDS[name]}`)
  return [
    'Usage: posthorn COMMAND',
    '',
    ...lines,
    '',
    'Configuration comes from the environment: see .env.example.',
  ].join('\n')
}

async function run(command: CommandName, operands: string[]): Promise<void> {
  switch (command) {
    case 'serve':
      return serve({ api: true, worker: true })
    case 'api':
      return serve({ api: true, worker: false })
    case 'worker':
      return serve({ api: false, worker: true })
    case 'migrate': {
      const { databaseUrl, databasePooler } = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
      const applied = await migrate(databaseUrl, databasePooler)
      print(applied.length === 0 ? 'The database is up to date.' : `Applied: ${applied.join(', ')}`)
      return
    }
    case 'seed': {
      const [file] = operands
      if (file === undefined || operands.length > 1) throw new ConfigError(['posthorn seed takes one FILE'])
      const { databaseUrl, databasePooler } = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
      const { summary, newKeys } = await seedFromFile(databaseUrl, file, { pooler: databasePooler })
      for (const { memberId, name, key } of newKeys)
        print(`New API key "${name}" of ${memberId}, shown only now: ${key}`)
      print(summary)
      return
    }
    case 'api-key':
      return apiKey(operands)
    case 're-encrypt': {
      if (operands.length > 0) throw new UsageError(command, ['it takes no arguments'])
      return reEncryptAll()
    }
    case 'doctor':
      return doctor(operands)
    case 'catalogue':
      process.exitCode = await runCatalogueCommand(operands, { print, complain })
      return
    case 'listen':
      return listenToEvents(operands)
    case 'openapi':
      return printOpenApi()
  }
}

async function apiKey(args: readonly string[]): Promise<void> {
  const wanted = parseApiKeyArguments(args, new Date())
  if (wanted.kind === 'help') {
    print(API_KEY_USAGE)
    return
  }
  const database = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
  await withDatabase(database, (db) => runApiKeyCommand(db, wanted, { print, note: complain }))
}

async function listenToEvents(args: readonly string[]): Promise<void> {
  // Loaded only here: the HTTP client takes other commands longer than their work.
  const [{ LISTEN_USAGE, parseListenArguments }, { listen }] = await Promise.all([
    import('./listen/listen-arguments.ts'),
    import('./listen/listen.ts'),
  ])
  const wanted = parseListenArguments(args, process.env)
  if (wanted.kind === 'help') {
    print(LISTEN_USAGE)
    return
  }
  // Nothing has to be stopped: what is not forwarded is nowhere recorded as sent.
  onStopSignal(() => Promise.resolve())
  // The reader of a pipe is gone.
  process.stdout.on('error', () => process.exit())
  await listen(wanted, { print, note: complain })
}

async function reEncryptAll(): Promise<void> {
  const config = loadConfig(process.env, ['databaseUrl', 'databasePooler', 'encryptionKeys'])
  const secretBox = createSecretBox(config.encryptionKeys)
  const outcome = await withDatabase(config, (db) => reEncrypt(db, secretBox))
  const { lines, problems } = describeReEncryption(outcome, secretBox.newestKeyId)
  for (const line of lines) print(line)
  for (const problem of problems) complain(problem)
  // As long as another key is in use, no script may go on to take it out of the ring.
  if (outcome.left.length > 0) process.exitCode = 1
}

async function doctor(args: readonly string[]): Promise<void> {
  // Loaded only here: Temporal's client takes other commands longer than their work.
  const { runDoctorCommand } = await import('./doctor/doctor-command.ts')
  const code = await runDoctorCommand(args, { env: process.env, print })
  // The search for a host's address may go on for longer than its check.
  process.exit(code)
}

async function printOpenApi(): Promise<void> {
  const catalogue = await loadCatalogue(loadConfig(process.env, ['catalogueFile']).catalogueFile)
  // Loaded only here: the schemas of all routes take other commands longer than their work.
  const [{ openApiDocument }, { routes }] = await Promise.all([
    import('../http/openapi.ts'),
    import('../http/routes/index.ts'),
  ])
  print(JSON.stringify(openApiDocument(routes, catalogue), null, 2))
}

async function serve(roles: Roles): Promise<void> {
  const config = loadConfig(process.env, ALL_SETTINGS)
  const catalogue = await loadCatalogue(config.catalogueFile)
  // Loaded only here: Temporal's native parts would slow every other command down.
  const { startService } = await import('./service.ts')
  const logger = createLogger({ level: config.logLevel })
  const running = createStack()
  const shutdown = createShutdown(config.shutdownGraceMs)
  const end = onStopSignal(async (reason) => {
    logger.info({ event: 'service.stopping', reason }, 'service.stopping')
    shutdown.begin()
    reportProblems(await running.stop(config.shutdownGraceMs + STOP_MARGIN_MS))
  })
  try {
    await startService(config, roles, { catalogue, logger, running, shutdown, end })
  } catch (error) {
    reportProblems(await running.stop())
    fail(describeError(error), 1)
    // Temporal's native parts may keep the process alive; a supervisor has to see it end.
    process.exit()
  }
}

function reportProblems(problems: string[]): void {
  for (const problem of problems) complain(`Could not stop ${problem}`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function complain(line: string): void {
  process.stderr.write(`${line}\n`)
}

function fail(text: string, code: number): void {
  complain(text)
  process.exitCode = code
}

async function main(): Promise<void> {
  const [first, ...rest] = process.argv.slice(2)
  // These have options of their own.
  if (first === 'api-key' || first === 'catalogue' || first === 'doctor' || first === 'listen')
    return run(first, rest)
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' } },
  })
  const command = COMMAND_NAMES.find((name) => name === positionals[0])
  if (values.version === true) print(packageJson.version)
  else if (values.help === true) print(usage())
  else if (command === undefined) fail(usage(), USAGE_ERROR)
  else await run(command, positionals.slice(1))
}

try {
  await main()
} catch (error) {
  const badUsage =
    error instanceof ConfigError ||
    error instanceof UsageError ||
    (error instanceof TypeError && 'code' in error)
  fail(describeError(error), badUsage ? USAGE_ERROR : 1)
}

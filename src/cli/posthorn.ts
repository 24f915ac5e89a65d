import { parseArgs } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import { ALL_SETTINGS, ConfigError, loadConfig } from '../config.ts'
import { openApiDocument } from '../http/openapi.ts'
import { routes } from '../http/routes/index.ts'
import { createLogger } from '../logger.ts'
import { describeError } from './describe-error.ts'
import { COMMAND_NAMES, COMMANDS, type CommandName } from './commands.ts'
import { migrate } from './migrate.ts'
import { createStack } from './stack.ts'
import { onStopSignal } from './on-stop-signal.ts'
import { seedFromFile } from './seed.ts'
import type { Roles } from './service.ts'

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
      const { databaseUrl } = loadConfig(process.env, ['databaseUrl'])
      const applied = await migrate(databaseUrl)
      say(applied.length === 0 ? 'The database is up to date.' : `Applied: ${applied.join(', ')}`)
      return
    }
    case 'seed': {
      const [file] = operands
      if (file === undefined || operands.length > 1) throw new ConfigError(['posthorn seed takes one FILE'])
      const { databaseUrl } = loadConfig(process.env, ['databaseUrl'])
      const { summary, newKeys } = await seedFromFile(databaseUrl, file)
      for (const { memberId, name, key } of newKeys)
        say(`New API key "${name}" of ${memberId}, shown only now: ${key}`)
      say(summary)
      return
    }
    case 'openapi':
      say(JSON.stringify(openApiDocument(routes), null, 2))
  }
}

async function serve(roles: Roles): Promise<void> {
  const config = loadConfig(process.env, ALL_SETTINGS)
  // Loaded only here: the engine's native parts would slow every other command down.
  const { startService } = await import('./service.ts')
  const logger = createLogger({ level: config.logLevel })
  const running = createStack()
  onStopSignal(async (signal) => {
    logger.info({ event: 'service.stopping', signal }, 'service.stopping')
    reportProblems(await running.stop())
  })
  try {
    await startService(config, roles, logger, running)
  } catch (error) {
    reportProblems(await running.stop())
    fail(describeError(error), 1)
    // The engine's native parts may keep the process alive; a supervisor has to see it end.
    process.exit()
  }
}

function reportProblems(problems: string[]): void {
  for (const problem of problems) process.stderr.write(`Could not stop ${problem}\n`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function fail(text: string, code: number): void {
  process.stderr.write(`${text}\n`)
  process.exitCode = code
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' } },
  })
  const command = COMMAND_NAMES.find((name) => name === positionals[0])
  if (values.version === true) say(packageJson.version)
  else if (values.help === true) say(usage())
  else if (command === undefined) fail(usage(), USAGE_ERROR)
  else await run(command, positionals.slice(1))
}

try {
  await main()
} catch (error) {
  const badUsage = error instanceof ConfigError || (error instanceof TypeError && 'code' in error)
  fail(describeError(error), badUsage ? USAGE_ERROR : 1)
}

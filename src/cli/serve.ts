import { ALL_SETTINGS, ConfigError, loadConfig, type Config } from '../config/load.ts'
import { SETTINGS } from '../config/settings.ts'
import { createLogger } from '../observability/logger.ts'
import { createShutdown, STOP_MARGIN_MS } from '../shutdown.ts'
import { loadCatalogue } from './catalogue.ts'
import { createStack, onStopSignal } from '../process/process-end.ts'
import { type Arguments, type Output, type RunCommand, UsageError } from './command-line/command.ts'
import { createReader } from './command-line/read-arguments.ts'
import { apiUrl } from './listen/listen-arguments.ts'
import { DEFAULT_API } from './listen/listen-defaults.ts'
import type { Roles } from '../process/dispatch.ts'
import type { ProcessHost } from '../process/service.ts'

/** Returns `posthorn serve`, `api` or `worker`, which run until a signal ends them. */
export function runService(roles: Roles): RunCommand {
  return async (_args, output) => {
    const config = loadConfig(process.env, ALL_SETTINGS)
    const catalogue = await loadCatalogue(config.catalogueFile)
    // Loaded only with valid settings: Temporal's native parts take the longest.
    const { startService } = await import('../process/service.ts')
    return runUntilStopped(config, output, (host) => startService(config, roles, { catalogue, ...host }))
  }
}

/** `posthorn relay`. Runs until a signal ends it, unless it only prints. */
export async function runRelay(args: Arguments, output: Output): Promise<number> {
  const { command, given, problems } = args
  const api = createReader(args, process.env).orVariable('api', 'POSTHORN_URL', apiUrl) ?? DEFAULT_API
  if (problems.length > 0) throw new UsageError(command, problems)
  if (given.has('print-sql')) {
    const { outboxSql } = await import('../relay/outbox.ts')
    output.print(outboxSql().trimEnd())
    return 0
  }
  const { NEEDED_SETTINGS, startRelay } = await import('../process/relay-service.ts')
  const config = loadConfig(process.env, NEEDED_SETTINGS)
  const missing = (['relayDatabaseUrl', 'relayOperatorKey'] as const).filter((name) => config[name] === '')
  if (missing.length > 0)
    throw new ConfigError(
      missing.map((name) => `${SETTINGS[name].variable} is not set: ${SETTINGS[name].description}`),
    )
  return runUntilStopped(config, output, (host) => startRelay(config, api, host))
}

/** Starts the parts of a process with `start`, and stops them at a signal. Throws what `start` throws. */
async function runUntilStopped(
  { logLevel, shutdownGraceMs }: Pick<Config, 'logLevel' | 'shutdownGraceMs'>,
  { note }: Output,
  start: (host: ProcessHost) => Promise<unknown>,
): Promise<number> {
  const logger = createLogger({ level: logLevel })
  const running = createStack()
  const shutdown = createShutdown(shutdownGraceMs)
  const reportProblems = (problems: string[]): void => {
    for (const problem of problems) note(`Could not stop ${problem}`)
  }
  const end = onStopSignal(async (reason) => {
    logger.info({ event: 'service.stopping', reason })
    shutdown.begin()
    reportProblems(await running.stop(shutdownGraceMs + STOP_MARGIN_MS))
  })
  try {
    await start({ logger, running, shutdown, end })
    return 0
  } catch (error) {
    // The signal came while it started, and what it needed has ended.
    if (shutdown.stopping.aborted) return 0
    reportProblems(await running.stop())
    throw error
  }
}

import { ALL_SETTINGS, loadConfig, type Config } from '../config/load.ts'
import { createLogger } from '../observability/logger.ts'
import { createShutdown, STOP_MARGIN_MS } from '../shutdown.ts'
import { loadCatalogue } from './catalogue-file.ts'
import { onStopSignal } from '../process/process-events.ts'
import type { Output } from './command-line/command.ts'
import type { Roles } from '../process/dispatch.ts'
import type { ProcessHost } from '../process/service.ts'
import { createStack } from '../process/shutdown-stack.ts'

/** Runs a process until a signal ends it. Throws when it cannot start; the caller ends the process then. */
export async function serve(roles: Roles, output: Output): Promise<void> {
  const config = loadConfig(process.env, ALL_SETTINGS)
  const catalogue = await loadCatalogue(config.catalogueFile)
  // Loaded only with valid settings: Temporal's native parts take the longest.
  const { startService } = await import('../process/service.ts')
  await runUntilStopped(config, output, (host) => startService(config, roles, { catalogue, ...host }))
}

/** Starts the parts of a process with `start`, and stops them at a signal. Throws what `start` throws. */
export async function runUntilStopped(
  { logLevel, shutdownGraceMs }: Pick<Config, 'logLevel' | 'shutdownGraceMs'>,
  { note }: Output,
  start: (host: ProcessHost) => Promise<unknown>,
): Promise<void> {
  const logger = createLogger({ level: logLevel })
  const running = createStack()
  const shutdown = createShutdown(shutdownGraceMs)
  const reportProblems = (problems: string[]): void => {
    for (const problem of problems) note(`Could not stop ${problem}`)
  }
  const end = onStopSignal(async (reason) => {
    logger.info({ event: 'service.stopping', reason }, 'service.stopping')
    shutdown.begin()
    reportProblems(await running.stop(shutdownGraceMs + STOP_MARGIN_MS))
  })
  try {
    await start({ logger, running, shutdown, end })
  } catch (error) {
    reportProblems(await running.stop())
    throw error
  }
}

import { ALL_SETTINGS, loadConfig } from '../config/load.ts'
import { createLogger } from '../observability/logger.ts'
import { createShutdown, STOP_MARGIN_MS } from '../shutdown.ts'
import { loadCatalogue } from './catalogue-file.ts'
import { onStopSignal } from '../process/process-events.ts'
import type { Output } from './command-line/command.ts'
import type { Roles } from '../process/dispatch.ts'
import { createStack } from '../process/shutdown-stack.ts'

/** Runs a process until a signal ends it. Throws when it cannot start; the caller ends the process then. */
export async function serve(roles: Roles, { note }: Output): Promise<void> {
  const config = loadConfig(process.env, ALL_SETTINGS)
  const catalogue = await loadCatalogue(config.catalogueFile)
  // Loaded only with valid settings: Temporal's native parts take the longest.
  const { startService } = await import('../process/service.ts')
  const logger = createLogger({ level: config.logLevel })
  const running = createStack()
  const shutdown = createShutdown(config.shutdownGraceMs)
  const reportProblems = (problems: string[]): void => {
    for (const problem of problems) note(`Could not stop ${problem}`)
  }
  const end = onStopSignal(async (reason) => {
    logger.info({ event: 'service.stopping', reason }, 'service.stopping')
    shutdown.begin()
    reportProblems(await running.stop(config.shutdownGraceMs + STOP_MARGIN_MS))
  })
  try {
    await startService(config, roles, { catalogue, logger, running, shutdown, end })
  } catch (error) {
    reportProblems(await running.stop())
    throw error
  }
}

import { ConfigError, loadConfig } from '../config/load.ts'
import { SETTINGS } from '../config/settings.ts'
import { outboxSql } from '../relay/outbox.ts'
import { type Arguments, type Output, UsageError } from './command-line/command.ts'
import { createReader } from './command-line/read-arguments.ts'
import { apiUrl } from './listen/listen-arguments.ts'
import { DEFAULT_API } from './listen/listen-defaults.ts'
import { runUntilStopped } from './serve.ts'

/** `posthorn relay`. Runs until a signal ends it, unless it only prints. */
export async function runRelay(
  { command, given, problems }: Arguments,
  output: Output,
  env = process.env,
): Promise<number> {
  const reader = createReader(given, problems)
  const api = reader.orVariable('api', 'POSTHORN_URL', env['POSTHORN_URL'] ?? '', apiUrl) ?? DEFAULT_API
  if (problems.length > 0) throw new UsageError(command, problems)
  if (given.has('print-sql')) {
    output.print(outboxSql().trimEnd())
    return 0
  }
  const { RELAY_SETTINGS, startRelay } = await import('../process/relay-service.ts')
  const config = loadConfig(env, RELAY_SETTINGS)
  const missing = (['relayDatabaseUrl', 'relayOperatorKey'] as const).filter((name) => config[name] === '')
  if (missing.length > 0)
    throw new ConfigError(
      missing.map((name) => `${SETTINGS[name].variable} is not set: ${SETTINGS[name].description}`),
    )
  await runUntilStopped(config, output, (host) => startRelay(config, api, host))
  return 0
}

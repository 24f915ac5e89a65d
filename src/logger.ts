import { pino } from 'pino'

/** The few calls of a logger that Posthorn uses; `pino` and a silent one in tests both fit. */
export type Logger = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** JSON lines to standard output, or appended to `file`; keys and secrets are redacted wherever they stand. */
export function createLogger(options: { level: LogLevel; file?: string }): Logger {
  const redact = ['secret', 'signingSecret', 'key', '*.secret', '*.signingSecret', 'headers["x-api-key"]']
  const pinoOptions = { level: options.level, base: null, redact: { paths: redact, censor: '[redacted]' } }
  if (options.file === undefined) return pino(pinoOptions)
  return pino(pinoOptions, pino.destination({ dest: options.file, mkdir: true, sync: false }))
}

import { pino } from 'pino'

/** The few calls of a logger that Posthorn uses; `pino` and a silent one in tests both fit. */
export type Logger = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Never logged by anybody; this is the net under that, for an object logged whole. */
const SECRET_FIELDS = [
  'secret',
  'signingSecret',
  'key',
  'apiKey',
  'encryptionKeys',
  'databaseUrl',
  'temporalApiKey',
]

/** At the top of a line and in the objects right below it, which is as deep as our lines go. */
const REDACTED_PATHS = [
  ...SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]),
  'headers["x-api-key"]',
  '*.headers["x-api-key"]',
]

/** JSON lines to standard output, or appended to `file`. Known secrets are redacted, and errors cut to their words. */
export function createLogger(options: { level: LogLevel; file?: string }): Logger {
  const pinoOptions = {
    level: options.level,
    base: null,
    redact: { paths: REDACTED_PATHS, censor: '[redacted]' },
    serializers: { err: presentError },
  }
  if (options.file === undefined) return pino(pinoOptions)
  return pino(pinoOptions, pino.destination({ dest: options.file, mkdir: true, sync: false }))
}

/** Not the error's own fields: those of a failed query are its parameters, payloads and sealed secrets among them. */
function presentError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {}
  const { cause } = error
  return {
    type: error.name,
    message: error.message,
    ...code,
    stack: error.stack,
    ...(cause === undefined ? {} : { cause: presentError(cause) }),
  }
}

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
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'secret',
  'signingSecret',
  'key',
  'apiKey',
  'x-api-key',
  'encryptionKeys',
  'databaseUrl',
  'temporalApiKey',
])

type Fields = Record<string, unknown>

/** Our lines go two levels deep. */
const DEEPEST_FIELDS = 4

/** JSON lines to standard output, or appended to `file`. Known secrets are redacted, and errors cut to their words. */
export function createLogger(options: { level: LogLevel; file?: string }): Logger {
  const pinoOptions = {
    level: options.level,
    base: null,
    // Pino's own redaction copies every line, also those that hold nothing but words and numbers.
    formatters: { log: (fields: Fields) => withoutSecrets(fields, 1) },
    serializers: { err: presentError },
  }
  if (options.file === undefined) return pino(pinoOptions)
  return pino(pinoOptions, pino.destination({ dest: options.file, mkdir: true, sync: false }))
}

/** The same object where there is nothing to redact. */
function withoutSecrets(fields: Fields, depth: number): Fields {
  let redacted: Fields | null = null
  for (const [name, value] of Object.entries(fields)) {
    const shown = SECRET_FIELDS.has(name) ? '[redacted]' : nested(value, depth)
    if (shown !== value) redacted = { ...(redacted ?? fields), [name]: shown }
  }
  return redacted ?? fields
}

function nested(value: unknown, depth: number): unknown {
  // Errors have a way of their own to be shown.
  if (typeof value !== 'object' || value === null || value instanceof Error) return value
  return depth < DEEPEST_FIELDS ? withoutSecrets(value as Fields, depth + 1) : '[too deep]'
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

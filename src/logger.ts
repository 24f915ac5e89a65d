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

const STDOUT = 1

/** A line that could not be written stays in memory, so no more than one is tried in this time. */
const WRITE_AGAIN_AFTER_MS = 1_000

/** JSON lines to standard output, or appended to `file`. Known secrets are redacted, and errors cut to their words. */
export function createLogger(options: { level: LogLevel; file?: string }): Logger {
  const pinoOptions = {
    level: options.level,
    base: null,
    // Pino's own redaction copies every line, also those that hold nothing but words and numbers.
    formatters: { log: (fields: Fields) => withoutSecrets(fields, 1) },
    serializers: { err: presentError },
  }
  return pino(pinoOptions, createOutput(options.file))
}

/** Where lines go. While they cannot be written, as on a full disk, they are dropped; the process goes on. */
function createOutput(file: string | undefined): { write(line: string): void } {
  const output =
    file === undefined
      ? pino.destination({ dest: STDOUT })
      : pino.destination({ dest: file, mkdir: true, sync: false })
  let pausedUntilMs = 0
  output.on('error', () => {
    pausedUntilMs = performance.now() + WRITE_AGAIN_AFTER_MS
    // What is left when the process ends would be tried for ever.
    output.flushSync = () => undefined
  })
  return {
    write(line) {
      if (performance.now() >= pausedUntilMs) output.write(line)
    },
  }
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

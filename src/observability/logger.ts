import { pino } from 'pino'

/** The fields of a line. */
type Line = { event: string; [field: string]: unknown }

/**
 * The few calls of a logger that Posthorn uses; `pino` and a silent one in tests both fit. The message of a line is the name
 * of its event, where it has no text of its own.
 */
export type Logger = {
  info(line: Line, message?: string): void
  warn(line: Line, message?: string): void
  error(line: Line, message?: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** No call logs these; they are redacted in case an object is logged as a whole. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'secret',
  'signingSecret',
  'key',
  'apiKey',
  'x-api-key',
  'x-operator-key',
  'encryptionKeys',
  'operatorKeys',
  'databaseUrl',
  'operatorKey',
  'relayDatabaseUrl',
  'relayOperatorKey',
  'temporalApiKey',
])

type Fields = Record<string, unknown>

/** The lines of Posthorn are two levels deep. */
const DEEPEST_FIELDS = 4

const STDOUT = 1

/** A line that could not be written stays in memory, so at most one is tried in this time. */
const WRITE_AGAIN_AFTER_MS = 1_000

/** Creates a logger of JSON lines to standard output or `file`. It redacts known secrets and reduces errors to text. */
export function createLogger(options: { level: LogLevel; file?: string }): Logger {
  const pinoOptions = {
    level: options.level,
    base: null,
    // Pino's own redaction copies every line, even one of words and numbers only.
    formatters: { log: (fields: Fields) => withoutSecrets(fields, 1) },
    serializers: { err: presentError },
    hooks: { logMethod: withMessage },
  }
  return pino(pinoOptions, createOutput(options.file))
}

function withMessage(this: pino.Logger, given: Parameters<pino.LogFn>, write: pino.LogFn): void {
  const [line, message = line.event] = given as unknown as Parameters<Logger['info']>
  write.call(this, line, message)
}

/** Creates the output of log lines. While they cannot be written, as on a full disk, they are dropped. */
function createOutput(file: string | undefined): { write(line: string): void } {
  const output =
    file === undefined
      ? pino.destination({ dest: STDOUT })
      : pino.destination({ dest: file, mkdir: true, sync: false })
  let pausedUntilMs = 0
  output.on('error', () => {
    pausedUntilMs = performance.now() + WRITE_AGAIN_AFTER_MS
    // Buffered lines would be retried for ever when the process ends.
    output.flushSync = () => undefined
  })
  return {
    write(line) {
      if (performance.now() >= pausedUntilMs) output.write(line)
    },
  }
}

/** Returns the same object when there is nothing to redact. */
function withoutSecrets(fields: Fields, depth: number): Fields {
  let redacted: Fields | null = null
  for (const [name, value] of Object.entries(fields)) {
    // The error of a line has a serialiser.
    if (name === 'err' && depth === 1) continue
    const shown = SECRET_FIELDS.has(name) ? '[redacted]' : nested(value, depth)
    if (shown !== value) redacted = { ...(redacted ?? fields), [name]: shown }
  }
  return redacted ?? fields
}

function nested(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Error) return presentError(value)
  return depth < DEEPEST_FIELDS ? withoutSecrets(value as Fields, depth + 1) : '[too deep]'
}

/** Leaves out the error's own fields: a failed query has its parameters there, with payloads and sealed secrets. */
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

import { isKeyShaped } from '../../credentials.ts'
import { checkWebhookUrl } from '../../outbound/url-rules.ts'
import { type Arguments, type Output, UsageError } from '../command-line/command.ts'
import { createReader, platformId } from '../command-line/read-arguments.ts'
import type { ListenCommand } from './listen.ts'
import { DEFAULT_API, FORWARD_POLICY } from './listen-defaults.ts'
import { parseUrl } from '../../domain/text-rules.ts'

const MAX_EVENTS_LENGTH = 8_000

/** Runs `posthorn listen`. The HTTP client is loaded only for arguments that are right. */
export async function runListen(args: Arguments, output: Output): Promise<never> {
  const wanted = readListenCommand(args, process.env)
  const [{ listen }, { onStopSignal }] = await Promise.all([
    import('./listen.ts'),
    import('../../process/process-end.ts'),
  ])
  // Nothing has to be stopped: what is not forwarded is nowhere recorded as sent.
  onStopSignal(() => Promise.resolve())
  // The reader of a pipe is gone.
  process.stdout.on('error', () => process.exit())
  return listen(wanted, output)
}

/** Reads the values of the options; throws UsageError with every problem at once. */
export function readListenCommand(
  args: Arguments,
  env: Readonly<Record<string, string | undefined>>,
): ListenCommand {
  const reader = createReader(args, env)
  const isKeyGiven = reader.has('key') || (env['POSTHORN_KEY'] ?? '') !== ''
  if (!isKeyGiven) reader.refuse('--key or POSTHORN_KEY has to be given')
  if (!reader.has('forward-to') && !reader.has('print'))
    reader.refuse('--forward-to or --print has to be given')
  if (reader.has('secret') && !reader.has('forward-to')) reader.refuse('--secret needs --forward-to')
  const command: ListenCommand = {
    apiUrl: reader.orVariable('api', 'POSTHORN_URL', apiUrl) ?? DEFAULT_API,
    apiKey: reader.orVariable('key', 'POSTHORN_KEY', apiKey) ?? '',
    organisationId: reader.orVariable('org', 'POSTHORN_ORG', platformId),
    events: reader.optional('events', eventKeys),
    forwardTo: reader.optional('forward-to', receiverUrl),
    secret: reader.optional('secret', signingSecret),
    printsBodies: reader.has('print'),
  }
  if (args.problems.length > 0) throw new UsageError(args.command, args.problems)
  return command
}

/** Parses the address of a Posthorn; returns it without a slash at its end. */
export function apiUrl(text: string): string {
  const url = parseUrl(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Error('must be the address of a Posthorn, such as https://posthorn.example.com')
  // An API key in a URL would be in logs.
  if (/[?#@]/.test(text))
    throw new Error('must have no user name, password, query or fragment: no key belongs into it')
  return url.href.replace(/\/+$/, '')
}

function apiKey(text: string): string {
  if (!isKeyShaped(text, 1)) throw new Error('must be an API key: up to 200 visible ASCII characters')
  return text
}

function eventKeys(text: string): string {
  const keys = text.split(',').map((key) => key.trim())
  if (text.length > MAX_EVENTS_LENGTH || !keys.every((key) => /^[\x21-\x7e]+$/.test(key)))
    throw new Error('must be event keys with commas between them, such as invoice:paid,customer:created')
  return keys.join(',')
}

function receiverUrl(text: string): string {
  const checked = checkWebhookUrl(text, FORWARD_POLICY)
  if (!checked.ok) throw new Error(`is refused as the URL of a webhook would be: ${checked.detail}`)
  return checked.url
}

function signingSecret(text: string): string {
  if (!/^[\x21-\x7e]{8,200}$/.test(text)) throw new Error('must be 8 to 200 visible ASCII characters')
  return text
}

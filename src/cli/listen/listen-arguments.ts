import { isKeyShaped } from '../../domain/api-key-shape.ts'
import { checkWebhookUrl } from '../../outbound/url-rules.ts'
import { createReader, platformId, readOptions } from '../read-options.ts'
import { UsageError } from '../usage-error.ts'
import { FORWARD_POLICY, FORWARD_TIMEOUT_MS } from './forward.ts'

export type ListenCommand = {
  kind: 'listen'
  /** Without a slash at its end. */
  apiUrl: string
  apiKey: string
  /** Null for that of the key's member. */
  organisationId: string | null
  /** Event keys, separated by commas; null for all that the member may see. */
  events: string | null
  /** Null to print only. */
  forwardTo: string | null
  /** Null for one to be generated. */
  secret: string | null
  printsBodies: boolean
}

const OPTIONS = ['events', 'forward-to', 'print', 'api', 'key', 'org', 'secret'] as const
const FLAGS = ['print'] as const

const DEFAULT_API = 'http://127.0.0.1:3000'
const MAX_EVENTS_LENGTH = 8_000

export const LISTEN_USAGE = [
  'Usage: posthorn listen [--events KEY,KEY…] [--forward-to URL] [--print] [--secret SECRET]',
  '                       [--api URL] [--key KEY] [--org ORG]',
  '',
  'Follows the event stream of an organisation and sends each event to URL, as webhooks send it.',
  '',
  '  --events      event keys, such as invoice:paid; all that the key may see by default',
  '  --forward-to  where each event is POSTed, such as http://localhost:4000/hook',
  '  --print       print the body of each event; without --forward-to nothing is sent',
  '  --secret      signing secret; by default a new one, which is printed at the start',
  `  --api         address of Posthorn; default: POSTHORN_URL, or ${DEFAULT_API}`,
  '  --key         API key; default: POSTHORN_KEY, which other users of this machine do not see',
  '  --org         organisation; default: POSTHORN_ORG, or that of the key',
  '',
  `A POST that is not answered with 2xx within ${FORWARD_TIMEOUT_MS / 1_000} seconds is shown, and not retried.`,
  'After a break it resumes without a gap or a repeat. Ctrl-C ends it.',
].join('\n')

type Environment = Readonly<Record<string, string | undefined>>

/** Parses what follows `posthorn listen`; throws UsageError with every problem at once. */
export function parseListenArguments(
  args: readonly string[],
  env: Environment,
): ListenCommand | { kind: 'help' } {
  if (args.includes('--help') || args.includes('-h')) return { kind: 'help' }
  const { given, problems } = readOptions({ after: 'listen', options: OPTIONS, flags: FLAGS }, args)
  const reader = createReader(given, problems)
  const orVariable = <T>(option: (typeof OPTIONS)[number], variable: string, parse: (text: string) => T) =>
    reader.orVariable(option, variable, env[variable] ?? '', parse)

  const isKeyGiven = reader.has('key') || (env['POSTHORN_KEY'] ?? '') !== ''
  if (!isKeyGiven) reader.refuse('--key or POSTHORN_KEY has to be given')
  if (!reader.has('forward-to') && !reader.has('print'))
    reader.refuse('--forward-to or --print has to be given')
  if (reader.has('secret') && !reader.has('forward-to')) reader.refuse('--secret needs --forward-to')
  const command: ListenCommand = {
    kind: 'listen',
    apiUrl: orVariable('api', 'POSTHORN_URL', apiUrl) ?? DEFAULT_API,
    apiKey: orVariable('key', 'POSTHORN_KEY', apiKey) ?? '',
    organisationId: orVariable('org', 'POSTHORN_ORG', platformId),
    events: reader.optional('events', eventKeys),
    forwardTo: reader.optional('forward-to', receiverUrl),
    secret: reader.optional('secret', signingSecret),
    printsBodies: reader.has('print'),
  }
  if (problems.length > 0) throw new UsageError('listen', problems)
  return command
}

function apiUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
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

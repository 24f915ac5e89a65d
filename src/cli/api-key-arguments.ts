import { DateTime } from 'luxon'
import type { ApiKeyChoice } from '../db/queries/api-key-admin.ts'
import { createReader, platformId, readOptions } from './read-options.ts'
import { UsageError } from './usage-error.ts'

export type ApiKeyCommand =
  | { kind: 'help' }
  | { kind: 'create'; organisationId: string; memberId: string; name: string; expiresAt: Date | null }
  | { kind: 'list'; organisationId: string; memberId: string | null; json: boolean }
  | { kind: 'revoke'; organisationId: string; choice: ApiKeyChoice }

/** What follows `posthorn api-key`, and which options each takes. */
const VERBS = {
  create: ['organisation', 'member', 'name', 'expires', 'expires-in-days'],
  list: ['organisation', 'member', 'json'],
  revoke: ['organisation', 'id', 'member', 'name'],
} as const

type Verb = keyof typeof VERBS
type Option = (typeof VERBS)[Verb][number]
type Reader = ReturnType<typeof createReader<Option>>

/** All but these take a value. */
const FLAGS = ['json'] as const

const MAX_DAYS = 3_650
const DAY_MS = 86_400_000
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/

export const API_KEY_USAGE = [
  'Usage: posthorn api-key create --organisation ORG --member MEMBER --name NAME',
  '                               [--expires 2027-01-01T00:00:00Z | --expires-in-days N]',
  '       posthorn api-key list --organisation ORG [--member MEMBER] [--json]',
  '       posthorn api-key revoke --organisation ORG (--id ID | --member MEMBER --name NAME)',
  '',
  'create prints the new key to standard output, this once, and all else to standard error.',
  'list shows every key, the revoked ones too, but never its value.',
  'revoke counts from the next request on. Revoking twice is harmless.',
].join('\n')

/** Reads what follows `posthorn api-key`; throws UsageError with every problem at once. */
export function parseApiKeyArguments(args: readonly string[], now: Date): ApiKeyCommand {
  const [first, ...rest] = args
  if (args.includes('--help') || args.includes('-h')) return { kind: 'help' }
  const verb = (Object.keys(VERBS) as Verb[]).find((name) => name === first)
  if (verb === undefined)
    throw new UsageError('api-key', [`it takes one of ${Object.keys(VERBS).join(', ')} first`])
  const options: readonly Option[] = VERBS[verb]
  const { given, problems } = readOptions({ after: verb, options, flags: FLAGS }, rest)
  const command = toCommand(verb, createReader(given, problems), now)
  if (problems.length > 0) throw new UsageError(`api-key ${verb}`, problems)
  return command
}

function toCommand(verb: Verb, reader: Reader, now: Date): ApiKeyCommand {
  const organisationId = reader.required('organisation', platformId)
  switch (verb) {
    case 'create': {
      const memberId = reader.required('member', platformId)
      const name = reader.required('name', keyName)
      return { kind: verb, organisationId, memberId, name, expiresAt: readExpiry(reader, now) }
    }
    case 'list':
      return {
        kind: verb,
        organisationId,
        memberId: reader.optional('member', platformId),
        json: reader.has('json'),
      }
    case 'revoke':
      return { kind: verb, organisationId, choice: readChoice(reader) }
  }
}

function readExpiry(reader: Reader, now: Date): Date | null {
  if (reader.has('expires') && reader.has('expires-in-days'))
    reader.refuse('--expires and --expires-in-days exclude each other')
  const days = reader.optional('expires-in-days', wholeDays)
  const until = reader.optional('expires', (text) => laterInstant(text, now))
  return days === null ? until : new Date(now.getTime() + days * DAY_MS)
}

function readChoice(reader: Reader): ApiKeyChoice {
  if (!reader.has('id')) {
    if (!reader.has('member') && !reader.has('name')) {
      reader.refuse('either --id or --member and --name have to be given')
      return { id: '' }
    }
    return { memberId: reader.required('member', platformId), name: reader.required('name', keyName) }
  }
  if (reader.has('member') || reader.has('name')) reader.refuse('--id stands without --member and --name')
  return { id: reader.required('id', uuid) }
}

function keyName(text: string): string {
  if (text.length > 200 || /[\u0000-\u001f\u007f]/.test(text))
    throw new Error('must be up to 200 characters without control characters')
  return text
}

function uuid(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    throw new Error('must be the id of a key, as posthorn api-key list shows it')
  return text
}

function wholeDays(text: string): number {
  const days = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (days < 1 || days > MAX_DAYS) throw new Error(`must be a whole number from 1 to ${MAX_DAYS}`)
  return days
}

/** The pattern asks for the time zone, Luxon for a day that exists. */
function laterInstant(text: string, now: Date): Date {
  const instant = DateTime.fromISO(text)
  if (!INSTANT.test(text) || !instant.isValid)
    throw new Error('must be a time with its zone, such as 2027-01-01T00:00:00Z')
  if (instant.toMillis() <= now.getTime()) throw new Error('must lie in the future')
  return instant.toJSDate()
}

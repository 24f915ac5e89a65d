import type { ApiKeyChoice } from '../db/queries/api-keys.ts'
import { isInstant, isPlainText, PLAIN_TEXT_RULE } from '../domain/text-rules.ts'
import { parseUuid } from '../ids.ts'
import type { ApiKeyCommand } from './api-key.ts'
import { type Arguments, type Output, UsageError } from './command-line/command.ts'
import { createReader, platformId } from './command-line/read-arguments.ts'

type Reader = ReturnType<typeof createReader>

const MAX_DAYS = 3_650
const DAY_MS = 86_400_000

/** Runs each of `posthorn api-key …`. The database is loaded only for arguments that are right. */
export async function runApiKey(args: Arguments, output: Output): Promise<number> {
  const wanted = readApiKeyCommand(args, new Date())
  const [{ runApiKeyCommand }, { loadConfig }, { withDatabase }] = await Promise.all([
    import('./api-key.ts'),
    import('../config/load.ts'),
    import('./with-database.ts'),
  ])
  const database = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
  await withDatabase(database, (db) => runApiKeyCommand(db, wanted, output))
  return 0
}

/** Reads the values of the options; throws UsageError with every problem at once. */
export function readApiKeyCommand(args: Arguments, now: Date): ApiKeyCommand {
  const { command, problems } = args
  const wanted = toCommand(command, createReader(args), now)
  if (problems.length > 0) throw new UsageError(command, problems)
  return wanted
}

function toCommand(command: string, reader: Reader, now: Date): ApiKeyCommand {
  const organisationId = reader.required('organisation', platformId)
  switch (command) {
    case 'api-key create': {
      const memberId = reader.required('member', platformId)
      const name = reader.required('name', keyName)
      return { kind: 'create', organisationId, memberId, name, expiresAt: readExpiry(reader, now) }
    }
    case 'api-key list':
      return {
        kind: 'list',
        organisationId,
        memberId: reader.optional('member', platformId),
        json: reader.has('json'),
      }
    default:
      return { kind: 'revoke', organisationId, choice: readChoice(reader) }
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
  if (text.length > 200 || !isPlainText(text))
    throw new Error(`must be up to 200 characters, ${PLAIN_TEXT_RULE}`)
  return text
}

function uuid(text: string): string {
  const id = parseUuid(text)
  if (id === null) throw new Error('must be the id of a key, as posthorn api-key list shows it')
  return id
}

function wholeDays(text: string): number {
  const days = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (days < 1 || days > MAX_DAYS) throw new Error(`must be a whole number from 1 to ${MAX_DAYS}`)
  return days
}

/** The seconds may be left out. */
function laterInstant(text: string, now: Date): Date {
  if (!isInstant(text.replace(/(?<=T\d\d:\d\d)(?=Z|[+-])/, ':00')))
    throw new Error('must be a time with its zone, such as 2027-01-01T00:00:00Z')
  const instant = new Date(text)
  if (instant <= now) throw new Error('must lie in the future')
  return instant
}

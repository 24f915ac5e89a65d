import type { EntityManager } from 'typeorm'
import { Type, type Static } from 'typebox'
import { hashCredential, isKeyShaped, isWeakKey, MAX_KEY_LENGTH, MIN_KEY_LENGTH } from '../credentials.ts'
import { apiKeyPrefix, auditApiKey, generateApiKey } from '../accounts/api-keys.ts'
import { saveMember, saveOrganisation } from '../accounts/organisations.ts'
import { ConfigError, loadConfig } from '../config/load.ts'
import { hasApiKey, upsertApiKey } from '../db/queries/organisations.ts'
import type { Pooler } from '../db/connection/session-limits.ts'
import { newId, PLATFORM_ID_PATTERN } from '../ids.ts'
import { visibleText } from '../process/visible-text.ts'
import type { Arguments, Output } from './command-line/command.ts'
import { commandLineActor, withDatabase } from './with-database.ts'
import { ACCOUNT_FORMATS, accountName, memberFields, organisationFields } from '../accounts/account-fields.ts'
import { documentProblems } from '../json-schema/field-errors.ts'
import { FileError, readTextFile } from './catalogue.ts'

/** A key that was made by this run: the only time it can be seen. */
export type NewKey = { organisationId: string; memberId: string; name: string; key: string }

/** `posthorn seed`. */
export async function runSeed({ operand: file }: Arguments, { print }: Output): Promise<number> {
  const { databaseUrl, databasePooler } = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
  const { summary, newKeys } = await seedFromFile(databaseUrl, file, { pooler: databasePooler })
  for (const { memberId, name, key } of newKeys)
    print(`New API key "${visibleText(name)}" of ${memberId}, shown only now: ${key}`)
  print(summary)
  return 0
}

/**
 * Brings the file's organisations, members and keys into the database, all or nothing. Repeating it changes nothing.
 */
export async function seedFromFile(
  databaseUrl: string,
  file: string,
  { pooler = 'none', isDemo = false }: { pooler?: Pooler; isDemo?: boolean } = {},
): Promise<{ summary: string; newKeys: NewKey[] }> {
  const seed = await readSeedFile(file, { isDemo })
  const newKeys = await withDatabase({ databaseUrl, databasePooler: pooler }, (dataSource) =>
    dataSource.transaction((manager) => apply(manager, seed)),
  )
  const members = seed.organisations.reduce(
    (sum, organisation) => sum + (organisation.members?.length ?? 0),
    0,
  )
  return {
    summary: `Seeded ${seed.organisations.length} organisation(s) with ${members} member(s).`,
    newKeys,
  }
}

async function apply(manager: EntityManager, seed: Seed): Promise<NewKey[]> {
  const newKeys: NewKey[] = []
  for (const { members = [], ...organisation } of seed.organisations) {
    const { id } = organisation
    const actor = commandLineActor(id, 'seed')
    await saveOrganisation(manager, actor, organisation)
    for (const { apiKeys = [], ...member } of members) {
      await saveMember(manager, actor, member)
      for (const { name, key } of apiKeys) {
        const made = await bringKey(manager, { organisationId: id, memberId: member.id, name, key })
        if (made !== null) newKeys.push(made)
      }
    }
  }
  return newKeys
}

/** Writes a given key; makes one where none is given and none of that name exists. */
async function bringKey(
  manager: EntityManager,
  wanted: Omit<NewKey, 'key'> & { key: string | undefined },
): Promise<NewKey | null> {
  const { organisationId, memberId, name } = wanted
  if (wanted.key === undefined && (await hasApiKey(manager, organisationId, memberId, name))) return null
  const key = wanted.key ?? generateApiKey()
  const stored = { id: newId(), name, prefix: apiKeyPrefix(key), hash: hashCredential(key) }
  try {
    const written = await upsertApiKey(manager, organisationId, memberId, stored)
    if (written !== null)
      await auditApiKey(manager, commandLineActor(organisationId, 'seed'), written, { memberId, ...stored })
  } catch (error) {
    if (!isKeyTaken(error)) throw error
    throw new ConfigError([`the key "${name}" of ${memberId} in ${organisationId} exists under another name`])
  }
  return wanted.key === undefined ? { organisationId, memberId, name, key } : null
}

/** True when the very key is in the database already, as another key of this member or of another. */
function isKeyTaken(error: unknown): boolean {
  return error instanceof Error && 'constraint' in error && error.constraint === 'api_key_hash_idx'
}

/** Far more than the organisations of a platform take. */
const MAX_FILE_MEGABYTES = 64

const id = Type.String({ pattern: PLATFORM_ID_PATTERN })

const ApiKeySchema = Type.Object(
  { name: accountName, key: Type.Optional(Type.String()) },
  { additionalProperties: false },
)

const MemberSchema = Type.Object(
  {
    id,
    ...memberFields,
    apiKeys: Type.Optional(Type.Array(ApiKeySchema)),
  },
  { additionalProperties: false },
)

const OrganisationSchema = Type.Object(
  {
    id,
    ...organisationFields,
    members: Type.Optional(Type.Array(MemberSchema)),
  },
  { additionalProperties: false },
)

const SeedSchema = Type.Object(
  { organisations: Type.Array(OrganisationSchema) },
  { additionalProperties: false },
)

/** The platform's organisations, members and keys; what is left out has its default. */
export type Seed = Static<typeof SeedSchema>

/**
 * Reads and checks a seed file; throws ConfigError naming every bad field. `isDemo` is for the file of the demo
 * organisation only, whose keys are short and public.
 */
export async function readSeedFile(file: string, { isDemo = false } = {}): Promise<Seed> {
  const seed = (await readJson(file)) as Seed
  const problems = documentProblems(SeedSchema, seed, {
    formats: ACCOUNT_FORMATS,
    keywords: ['documented'],
  })
  if (problems.length === 0) {
    problems.push(...duplicatesIn(seed).map((pointer) => `${pointer} stands there twice`))
    if (!isDemo) problems.push(...badKeysIn(seed).map(({ pointer, problem }) => `${pointer} ${problem}`))
  }
  if (problems.length === 0) return seed
  throw badFile(file, problems)
}

async function readJson(file: string): Promise<unknown> {
  try {
    return parseJson(await readTextFile(file, MAX_FILE_MEGABYTES))
  } catch (error) {
    if (error instanceof FileError) throw badFile(file, [error.message])
    throw error
  }
}

/** Parses it without repeating any of its text, which has keys. */
function parseJson(json: string): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch (error) {
    const [, position] = /at position (\d+)/.exec(String(error)) ?? []
    const line = json.slice(0, Number(position)).split('\n').length
    throw new FileError(`is not valid JSON${position === undefined ? '' : `: see line ${line}`}`)
  }
}

function badFile(file: string, problems: readonly string[]): ConfigError {
  return new ConfigError(
    problems.map((problem) => `${file}: ${problem}`),
    'The seed file',
  )
}

/** A value that may stand only once within `scope`, and where it stands. */
type Named = { pointer: string; scope: string; value: string }

/** Pointers of what stands twice: an id, a name of a key within its member, or a key anywhere in the file. */
function duplicatesIn(seed: Seed): string[] {
  const seen = new Set<string>()
  return namesIn(seed).flatMap(({ pointer, scope, value }) => {
    const identity = JSON.stringify([scope, value])
    if (seen.has(identity)) return [pointer]
    seen.add(identity)
    return []
  })
}

/** The keys that may not be used, and why; the key itself is never repeated. */
function badKeysIn(seed: Seed): { pointer: string; problem: string }[] {
  return namesIn(seed).flatMap(({ pointer, scope, value }) => {
    if (scope !== 'key') return []
    if (!isKeyShaped(value, MIN_KEY_LENGTH))
      return [{ pointer, problem: `must be ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} visible ASCII characters` }]
    return isWeakKey(value) ? [{ pointer, problem: WEAK }] : []
  })
}

const WEAK =
  'is too easy to guess: take one from a random source, such as openssl rand -hex 32, or leave it out to have one generated'

function namesIn({ organisations }: Seed): Named[] {
  return organisations.flatMap((organisation, index) => {
    const pointer = `/organisations/${index}`
    const id = { pointer: `${pointer}/id`, scope: 'organisation', value: organisation.id }
    return [id, ...(organisation.members ?? []).flatMap((member, at) => namesOf(member, pointer, at))]
  })
}

type Member = NonNullable<Seed['organisations'][number]['members']>[number]

function namesOf(member: Member, organisation: string, index: number): Named[] {
  const pointer = `${organisation}/members/${index}`
  const keys = (member.apiKeys ?? []).flatMap(({ name, key }, at) => {
    const named = { pointer: `${pointer}/apiKeys/${at}/name`, scope: pointer, value: name }
    if (key === undefined) return [named]
    return [named, { pointer: `${pointer}/apiKeys/${at}/key`, scope: 'key', value: key }]
  })
  return [{ pointer: `${pointer}/id`, scope: organisation, value: member.id }, ...keys]
}

import { Ajv2020 } from 'ajv/dist/2020.js'
import { Type, type Static } from 'typebox'
import { ACCOUNT_FORMATS, accountName, memberFields, organisationFields } from '../accounts/account-fields.ts'
import { toFieldErrors } from '../json-schema/field-errors.ts'
import { ConfigError } from '../config/load.ts'
import { isKeyShaped, isWeakKey, MAX_KEY_LENGTH, MIN_KEY_LENGTH } from '../credentials.ts'
import { PLATFORM_ID_PATTERN } from '../ids.ts'
import { FileError, readTextFile } from './catalogue.ts'

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
  const seed = await readJson(file)
  const ajv = new Ajv2020({
    allErrors: true,
    allowUnionTypes: true,
    formats: ACCOUNT_FORMATS,
    keywords: ['documented'],
  })
  const validate = ajv.compile<Seed>(SeedSchema)
  if (!validate(seed)) {
    const errors = toFieldErrors(validate.errors ?? [])
    throw badFile(
      file,
      errors.map(({ pointer, detail }) => `${pointer || '/'} ${detail}`),
    )
  }
  const problems = duplicatesIn(seed).map((pointer) => `${pointer} stands there twice`)
  if (!isDemo) problems.push(...badKeysIn(seed).map(({ pointer, problem }) => `${pointer} ${problem}`))
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
    const line = json.slice(0, position === undefined ? json.length : Number(position)).split('\n').length
    throw new FileError(`is not valid JSON: see line ${line}`)
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

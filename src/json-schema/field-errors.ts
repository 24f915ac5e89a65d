import type { ErrorObject } from 'ajv'
import { Ajv2020, type Options } from 'ajv/dist/2020.js'
import {
  jsonPointer,
  NO_NUL_PATTERN,
  PLAIN_TEXT_PATTERN,
  PLAIN_TEXT_RULE,
  VISIBLE_ASCII_PATTERN,
} from '../domain/text-rules.ts'
import type { FieldError } from '../problem-error.ts'
import { PLATFORM_ID_PATTERN, UUID_PATTERN } from '../ids.ts'

/** What the `code` of each field in `errors` of an `invalid_fields` means. The codes are stable. */
export const FIELD_PROBLEMS = {
  required: 'the field is missing',
  unknown_field: 'there is no such field or parameter',
  wrong_type: 'the value has another JSON type',
  not_allowed_value: 'the value is not one of those allowed',
  read_only: 'the field cannot be changed, and the value is not its present one',
  wrong_format: 'the value does not match its format or pattern',
  too_short: 'the text has too few characters',
  too_long: 'the text has too many characters',
  too_few: 'the list or object has too few entries',
  too_many: 'the list or object has too many entries',
  too_small: 'the number is below its minimum',
  too_large: 'the number is above its maximum',
  duplicate: 'the value, or the parameter, is there twice',
  invalid: 'the value is not valid for another reason, which `detail` says',
  unknown_event_key: 'there is no such event key',
  not_subscribable: 'the event key cannot be subscribed to by name',
  wildcard_not_alone: '`*` is combined with other event keys',
  invalid_url: 'the URL cannot be parsed',
  invalid_characters: 'the URL holds white space, a backslash or an invisible character',
  scheme_not_allowed: 'the URL does not begin with an allowed scheme',
  credentials_not_allowed: 'the URL holds a user name or a password',
  fragment_not_allowed: 'the URL has a `#` part',
  invalid_host: 'the host of the URL is not a valid name',
  host_not_public: 'the host of the URL is not on the public internet',
  port_not_allowed: 'the port of the URL belongs to another protocol',
  invalid_public_key: 'the push key is not a point of the curve P-256',
  invalid_auth_secret: 'the push secret does not have 16 bytes',
} as const satisfies Record<string, string>

type Params = Readonly<Record<string, unknown>>
type Explanation = Pick<FieldError, 'code' | 'detail'>

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
}

/** What a pattern asks for, in words: a regular expression says nothing to users. */
const PATTERN_RULES: ReadonlyMap<unknown, string> = new Map([
  [PLAIN_TEXT_PATTERN, `must be text ${PLAIN_TEXT_RULE}`],
  [VISIBLE_ASCII_PATTERN, 'must be visible ASCII characters without a space'],
  [NO_NUL_PATTERN, 'must not contain the character NUL'],
  [PLATFORM_ID_PATTERN, 'must be 1 to 64 letters, digits, hyphens and underscores'],
  [UUID_PATTERN, 'must be a UUID'],
])

const required = (): Explanation => ({ code: 'required', detail: 'is required' })
const unknownField = (): Explanation => ({ code: 'unknown_field', detail: 'is not a known field' })
const atLeast = (code: string, unit: string) => bound(code, 'must have at least', unit)
const atMost = (code: string, unit: string) => bound(code, 'must have at most', unit)
const compared = (code: string, words: string) => bound(code, `must be ${words}`)

/** What each JSON schema keyword that refuses a value is called outside; the codes are part of the API. */
const explanations: ReadonlyMap<string, (params: Params) => Explanation> = new Map([
  ['required', required],
  ['dependentRequired', required],
  ['additionalProperties', unknownField],
  ['unevaluatedProperties', unknownField],
  ['type', ({ type }) => ({ code: 'wrong_type', detail: `must be ${typeNames(type)}` })],
  [
    'enum',
    ({ allowedValues }) => ({ code: 'not_allowed_value', detail: `must be one of ${shown(allowedValues)}` }),
  ],
  ['const', ({ allowedValue }) => ({ code: 'not_allowed_value', detail: `must be ${shown(allowedValue)}` })],
  ['format', ({ format }) => ({ code: 'wrong_format', detail: `must be a valid ${shown(format)}` })],
  [
    'pattern',
    ({ pattern }) => ({
      code: 'wrong_format',
      detail: PATTERN_RULES.get(pattern) ?? `must match the pattern ${shown(pattern)}`,
    }),
  ],
  ['minLength', atLeast('too_short', 'character')],
  ['maxLength', atMost('too_long', 'character')],
  ['minItems', atLeast('too_few', 'item')],
  ['maxItems', atMost('too_many', 'item')],
  ['minProperties', atLeast('too_few', 'field')],
  ['maxProperties', atMost('too_many', 'field')],
  ['minimum', compared('too_small', 'at least')],
  ['exclusiveMinimum', compared('too_small', 'more than')],
  ['maximum', compared('too_large', 'at most')],
  ['exclusiveMaximum', compared('too_large', 'less than')],
  ['uniqueItems', () => ({ code: 'duplicate', detail: 'is in the list already' })],
])

/**
 * Puts ajv's errors into the words of the API, in ajv's order. With ajv's option `verbose` the words tell a null from
 * other wrong values.
 */
export function toFieldErrors(errors: readonly ErrorObject[]): FieldError[] {
  const misformatted = new Set(
    errors.filter(({ keyword }) => keyword === 'format').map(({ instancePath }) => instancePath),
  )
  return errors
    .filter(({ keyword, instancePath }) => {
      // The branch of an `if` has its own error, and a text that is not of its format needs no second complaint.
      const isRepetition = keyword === 'pattern' && misformatted.has(instancePath)
      return keyword !== 'if' && !isRepetition
    })
    .map(toFieldError)
}

/** Returns what a schema of ours refuses in a document: each the JSON pointer and the reason. */
export function documentProblems(schema: object, document: unknown, options: Options = {}): string[] {
  // Checking the schema itself would take ten times as long.
  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, validateSchema: false, ...options })
  const validate = ajv.compile(schema)
  if (validate(document)) return []
  return toFieldErrors(validate.errors ?? []).map(({ pointer, detail }) => `${pointer || '/'} ${detail}`)
}

function toFieldError({ keyword, params, instancePath, message, data }: ErrorObject): FieldError {
  const pointer = instancePath + childPointer(params)
  const explanation = explanations.get(keyword)?.(params)
  if (explanation === undefined) return { pointer, code: 'invalid', detail: message ?? 'is not valid' }
  const { code, detail } = explanation
  return { pointer, code, detail: data === null ? `${detail}, not null` : detail }
}

/** Ajv points at the object or list; the field that is missing or too much, or the repeated item, is its child. */
function childPointer(params: Params): string {
  const name = params['missingProperty'] ?? params['additionalProperty'] ?? params['unevaluatedProperty']
  if (typeof name === 'string') return jsonPointer([name])

  // Which of the two comes first depends on the way ajv compared the items.
  const { i, j } = params
  return typeof i === 'number' && typeof j === 'number' ? `/${Math.max(i, j)}` : ''
}

function bound(code: string, words: string, unit?: string): (params: Params) => Explanation {
  return ({ limit }) => {
    const counted = unit === undefined ? '' : ` ${unit}${limit === 1 ? '' : 's'}`
    return { code, detail: `${words} ${shown(limit)}${counted}` }
  }
}

function typeNames(type: unknown): string {
  const types: unknown[] = Array.isArray(type) ? type : [type]
  return types.map((name) => TYPE_NAMES[String(name)] ?? String(name)).join(' or ')
}

/** Characters of a value that a schema allows; a list may have thousands. */
const MAX_SHOWN_LENGTH = 500

function shown(value: unknown): string {
  const text = plain(value)
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH)}…`
}

function plain(value: unknown): string {
  if (Array.isArray(value)) return value.map(plain).join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

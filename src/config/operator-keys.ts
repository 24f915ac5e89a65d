import { isKeyShaped, isWeakKey, MAX_KEY_LENGTH, MIN_KEY_LENGTH } from '../domain/api-key-shape.ts'
import { isOperatorScope, OPERATOR_SCOPES, type OperatorKey } from '../domain/operator-scopes.ts'

/** `name:secret:scopes`. Neither a colon nor a comma can be part of a secret. */
const ENTRY = /^([^:]*):([^:]*):([^:]*)$/
const NAME = /^[A-Za-z0-9_-]{1,64}$/

/** Parses `POSTHORN_OPERATOR_KEYS`. Throws every problem at once, by the number of the entry: its text may be a secret. */
export function parseOperatorKeys(text: string): OperatorKey[] {
  if (text === '') return []
  const entries = text.split(',').map((entry) => parseEntry(entry.trim()))
  const keys = entries.map(({ key }) => key)
  const problems = entries.flatMap(({ problems }, index) =>
    [
      ...problems,
      ...(isRepeated(keys, index, 'name') ? ['has the name of an earlier one'] : []),
      ...(isRepeated(keys, index, 'secret') ? ['has the secret of an earlier one'] : []),
    ].map((problem) => `number ${index + 1} ${problem}`),
  )
  if (problems.length > 0) throw new Error(`has entries that are not usable: ${problems.join('; ')}`)
  return keys
}

function parseEntry(entry: string): { key: OperatorKey; problems: string[] } {
  const [, name = '', secret = '', scopeText = ''] = ENTRY.exec(entry) ?? []
  const given = scopeText.split('+')
  const scopes = given.filter(isOperatorScope)
  const key = { name, secret, scopes }
  if (!ENTRY.test(entry)) return { key, problems: ['is not name:secret:scopes'] }
  const problems: string[] = []
  if (!NAME.test(name)) problems.push('needs a name of 1 to 64 characters A-Z a-z 0-9 _ -')
  if (!isKeyShaped(secret, MIN_KEY_LENGTH))
    problems.push(`needs a secret of ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} visible ASCII characters`)
  else if (isWeakKey(secret)) problems.push('has a secret that is too easy to guess')
  if (scopes.length < given.length || new Set(given).size < given.length)
    problems.push(`needs different scopes out of ${OPERATOR_SCOPES.join(', ')}, joined by +`)
  return { key, problems }
}

function isRepeated(keys: readonly OperatorKey[], index: number, field: 'name' | 'secret'): boolean {
  const value = keys[index]?.[field] ?? ''
  return value !== '' && keys.findIndex((key) => key[field] === value) < index
}

import { createECDH } from 'node:crypto'
import { isIP } from 'node:net'
import { isMailAddress, isPlainText, parseUrl } from '../domain/text-rules.ts'
import { findTooWideRanges, parseCidr } from '../outbound/address-guard.ts'
import { isLoopbackHost, type AllowHttp } from '../outbound/host-names.ts'
import type { EncryptionKey } from '../secret-box.ts'
import { isKeyShaped, isWeakKey, MAX_KEY_LENGTH, MIN_KEY_LENGTH } from '../credentials.ts'
import { isOperatorScope, OPERATOR_SCOPES, type OperatorKey } from '../domain/permissions.ts'

// How the text of a setting becomes its value; each throws what is wrong with the text, without repeating it.

export function plain(text: string): string {
  return text
}

export function parseAllowHttp(text: string): AllowHttp {
  if (text === 'loopback') return text
  if (text !== 'true' && text !== 'false') throw new Error('must be true, false or loopback')
  return text === 'true'
}

export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
    return value
  }
}

export function optionalPort(text: string): number | null {
  return text === '' ? null : integer(0, 65_535)(text)
}

/** Without the port it would be Temporal's own, at which another server may answer. */
export function hostAndPort(text: string): string {
  const port = Number(/^(?:\[[\da-f:.]+\]|[^\s:/@[\]]+):(\d{1,5})$/i.exec(text)?.[1])
  if (!(port >= 1 && port <= 65_535)) throw new Error('must be host:port')
  return text
}

export function oneOf<T extends string>(...values: readonly T[]): (text: string) => T {
  return (text) => {
    const found = values.find((value) => value === text)
    if (found === undefined) throw new Error(`must be one of ${values.join(', ')}`)
    return found
  }
}

export function webAddress(text: string): string {
  if (text === '') return ''
  const url = /^https?:\/\//.test(text) ? parseUrl(text) : null
  if (url === null) throw new Error('must be an http:// or https:// URL')
  if (url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '')
    throw new Error('must be a plain URL: no user, query or fragment')
  return url.href.replace(/\/+$/, '')
}

/** Origins as Content-Security-Policy compares them: scheme, host and port, https but on loopback. */
export function parseFrameAncestors(text: string): string[] {
  const what = 'are not origins such as https://app.example.com (http:// on loopback only)'
  return assertEach(listOf(text), isFrameAncestor, what)
}

function isFrameAncestor(text: string): boolean {
  const url = parseUrl(text)
  // `origin` is canonical: lower case, no default port, no path, no user; a wildcard and `;` are not part of a host name.
  if (url === null || url.origin !== text || !/^https?:\/\/[\w.:[\]-]+$/.test(text)) return false
  return url.protocol === 'https:' || isLoopbackHost(url.hostname)
}

const MAX_BRAND_NAME_LENGTH = 40

/** The header of every page shows the name next to the organisation's. */
export function brandName(text: string): string {
  if (text.length > MAX_BRAND_NAME_LENGTH || !isPlainText(text))
    throw new Error(`must be plain text of at most ${MAX_BRAND_NAME_LENGTH} characters`)
  return text
}

export function hexColor(text: string): string {
  if (text !== '' && !/^#[0-9a-f]{6}$/i.test(text)) throw new Error('must be a colour such as #0b57d0')
  return text.toLowerCase()
}

export function mailAddress(text: string): string {
  if (!isMailAddress(text)) throw new Error('must be a plain e-mail address')
  return text
}

export function vapidKey(text: string): string {
  if (text === '') return ''
  try {
    if (!/^[A-Za-z0-9_-]{43}$/.test(text)) throw new Error('not 32 bytes')
    // A number that is no key of the curve is refused here.
    createECDH('prime256v1').setPrivateKey(text, 'base64url')
    return text
  } catch {
    throw new Error('must be a private key of P-256: 43 characters of base64url')
  }
}

export function parseDatabaseUrl(text: string): string {
  if (!/^postgres(ql)?:\/\//.test(text) || parseUrl(text) === null)
    throw new Error('must be a postgres:// URL')
  return text
}

export function optionalDatabaseUrl(text: string): string {
  return text === '' ? '' : parseDatabaseUrl(text)
}

/** The secret alone: its name and scopes are in `POSTHORN_OPERATOR_KEYS`. */
export function operatorSecret(text: string): string {
  if (text !== '' && (!isKeyShaped(text, MIN_KEY_LENGTH) || text.includes(':')))
    throw new Error(
      `must be the secret of an operator key alone: ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} visible ASCII characters`,
    )
  return text
}

export function parseKeyRing(text: string): EncryptionKey[] {
  const keys = text.split(',').map((entry) => {
    const match = /^([A-Za-z0-9_-]{1,32}):([0-9a-f]{64})$/.exec(entry.trim())
    if (match?.[1] === undefined || match[2] === undefined) {
      throw new Error(
        'must be id:key pairs separated by commas, each key 64 lower-case hexadecimal characters',
      )
    }
    return { id: match[1], key: Buffer.from(match[2], 'hex') }
  })
  if (new Set(keys.map((entry) => entry.id)).size < keys.length) throw new Error('names one key id twice')
  return keys
}

/** Addresses and ranges, all as ranges. */
export function parseTrustedProxies(text: string): string[] {
  const ranges = listOf(text).map((entry) =>
    isIP(entry) === 0 ? entry : `${entry}/${isIP(entry) === 6 ? 128 : 32}`,
  )
  const tooWide = findTooWideRanges(assertEach(ranges, isCidr, 'are neither addresses nor usable ranges'))
  if (tooWide.length > 0)
    throw new Error(
      `trusts more than proxies: ${tooWide.join(', ')} (no range below /8, below /16 in IPv6, or that holds ::ffff:0:0/96)`,
    )
  return ranges
}

function listOf(text: string): string[] {
  return text === '' ? [] : text.split(',').map((entry) => entry.trim())
}

/** Throws the numbers of the entries for which `isValid` is false, and `what` they are. */
function assertEach(entries: string[], isValid: (entry: string) => boolean, what: string): string[] {
  const bad = entries.flatMap((entry, index) => (isValid(entry) ? [] : [index + 1]))
  if (bad.length > 0) throw new Error(`has entries that ${what}: number ${bad.join(', ')}`)
  return entries
}

function isCidr(text: string): boolean {
  return parseCidr(text) !== null
}

export function parseCidrs(text: string): string[] {
  const ranges = assertEach(listOf(text), isCidr, 'are not usable ranges')
  // What is named is a range, and so no secret that got here by mistake.
  const tooWide = findTooWideRanges(ranges)
  if (tooWide.length > 0)
    throw new Error(
      `opens more than private networks: ${tooWide.join(', ')} (no range below /8, below /16 in IPv6 outside fc00::/7, none that holds ::ffff:0:0/96, and together at most a sixteenth of all addresses)`,
    )
  return ranges
}

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

/**
 * One environment variable: what it means, its default as text, and how text becomes a value (throws a reason). `isSecret`:
 * its value may lie in a file instead, which `<variable>_FILE` names.
 */
type Setting<T> = {
  variable: string
  description: string
  fallback: string | undefined
  parse: (text: string) => T
  isSecret: boolean
}

export function setting<T>(
  variable: string,
  description: string,
  fallback: string | undefined,
  parse: (text: string) => T,
): Setting<T> {
  return { variable, description, fallback, parse, isSecret: false }
}

/** The same for a secret value. */
export function secretSetting<T>(...given: Parameters<typeof setting<T>>): Setting<T> {
  return { ...setting(...given), isSecret: true }
}

import { isIP } from 'node:net'
import { parseUrl } from '../domain/text-rules.ts'
import type { FieldError } from '../problem-error.ts'
import { createAddressGuard } from './address-guard.ts'
import {
  isLocalhostName,
  withoutBrackets,
  withoutTrailingDot,
  isLoopbackHost,
  type AllowHttp,
} from './host-names.ts'

/** What the operator opened: plain http, and private networks. Both are closed by default. */
export type UrlPolicy = { allowHttp: AllowHttp; allowedCidrs: readonly string[] }

/** `url` is the canonical form, which is the one to store; `code` is stable, `detail` is readable text. */
export type UrlCheck = { ok: true; url: string } | { ok: false; code: string; detail: string }

type Refusal = { ok: false; code: string; detail: string }

const MAX_URL_LENGTH = 2048
// RFC 1035, section 2.3.4
const MAX_HOST_LENGTH = 253
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

/** Names that mean something only inside somebody's own network, or nothing at all. */
const PRIVATE_SUFFIXES: readonly string[] = [
  ...['local', 'localdomain', 'internal', 'intranet', 'lan', 'home', 'corp', 'home.arpa'],
  ...['onion', 'test', 'invalid', 'example'],
]

/** Ports from 1024 up that speak another protocol ("bad ports" of the Fetch standard). */
const FOREIGN_PORTS: ReadonlySet<number> = new Set([
  ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566],
  ...[6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
])

/**
 * Decides whether `raw` may be stored as an address to send to. The text itself is checked first, because
 * `new URL` silently repairs much of what an attacker would write; then its canonical form. No name is resolved:
 * it may not exist yet, and the check that counts is the one made when a delivery connects.
 */
export function checkWebhookUrl(raw: unknown, policy: UrlPolicy): UrlCheck {
  if (typeof raw !== 'string') return refuse('invalid_url', 'The URL must be a string.')
  const badText = refuseText(raw, policy)
  if (badText !== null) return badText
  const url = parseUrl(raw)
  if (url === null) return refuse('invalid_url', 'This is not a valid URL.')
  if (url.href.length > MAX_URL_LENGTH) return tooLong()
  if (url.protocol === 'http:' && policy.allowHttp === 'loopback' && !isLoopbackHost(url.hostname)) {
    return refuse(
      'scheme_not_allowed',
      'The URL must start with https://, unless its host is this machine itself.',
    )
  }
  const badHost = refuseHost(url.hostname, policy)
  if (badHost !== null) return badHost
  if (!isPortAllowed(url, policy)) {
    return refuse('port_not_allowed', 'Use port 443, or a port from 1024 up that no other protocol uses.')
  }
  return { ok: true, url: url.href }
}

/** Returns the error of a request whose field at `pointer` is such a URL; none where it may be stored. */
export function urlErrors(pointer: string, url: string, policy: UrlPolicy): FieldError[] {
  const checked = checkWebhookUrl(url, policy)
  return checked.ok ? [] : [{ pointer, code: checked.code, detail: checked.detail }]
}

/** Returns the form in which a URL is stored that `checkWebhookUrl` has accepted. Throws for any other. */
export function canonicalUrl(raw: string, policy: UrlPolicy): string {
  const checked = checkWebhookUrl(raw, policy)
  if (!checked.ok) throw new Error('the URL of a checked request is not valid')
  return checked.url
}

function refuseText(raw: string, policy: UrlPolicy): Refusal | null {
  if (raw.length > MAX_URL_LENGTH) return tooLong()
  // Controls, invisible format characters and lone surrogates: `new URL` drops or replaces them without a word.
  if (/[\s\\\p{Cc}\p{Cf}\p{Cs}]/u.test(raw)) {
    return refuse('invalid_characters', 'The URL holds white space, a backslash or an invisible character.')
  }
  if (/^https?:\/\/$/i.test(raw))
    return refuse('invalid_host', 'The URL has no host, such as hooks.example.com.')
  if (!(policy.allowHttp === false ? /^https:\/\/[^/]/i : /^https?:\/\/[^/]/i).test(raw)) {
    return refuse(
      'scheme_not_allowed',
      `The URL must start with ${policy.allowHttp === false ? 'https://' : 'https:// or http://'}.`,
    )
  }
  if (raw.includes('#')) return refuse('fragment_not_allowed', 'The URL must not have a # part.')
  const authority = /^[^:]+:\/\/([^/?]*)/.exec(raw)?.[1] ?? ''
  if (authority.includes('@')) {
    return refuse('credentials_not_allowed', 'The URL must not hold a user name or a password.')
  }
  if (authority.includes('%') || authority.endsWith(':')) {
    return refuse('invalid_host', 'The host of the URL is not written plainly.')
  }
  return null
}

function refuseHost(hostname: string, policy: UrlPolicy): Refusal | null {
  const address = withoutBrackets(hostname)
  if (isIP(address) !== 0) {
    return createAddressGuard(policy).isBlocked(address) ? notPublic() : null
  }
  const name = withoutTrailingDot(hostname)
  const labels = name.split('.')
  if (name.length > MAX_HOST_LENGTH || !labels.every((label) => LABEL.test(label))) {
    return refuse('invalid_host', 'The host of the URL is not a valid name.')
  }
  if (isLocalhostName(name)) return isLoopbackOpen(policy) ? null : notPublic()
  const isPrivate = labels.length < 2 || PRIVATE_SUFFIXES.some((suffix) => `.${name}`.endsWith(`.${suffix}`))
  return isPrivate && policy.allowedCidrs.length === 0 ? notPublic() : null
}

function isLoopbackOpen(policy: UrlPolicy): boolean {
  if (!createAddressGuard(policy).isBlocked('127.0.0.1')) return true
  return policy.allowedCidrs.some((cidr) => cidr.startsWith('127.'))
}

function isPortAllowed(url: URL, policy: UrlPolicy): boolean {
  const defaultPort = url.protocol === 'http:' ? 80 : 443
  const port = url.port === '' ? defaultPort : Number(url.port)
  if (port === 443) return true
  if (port === 80) return policy.allowHttp !== false
  return port >= 1024 && !FOREIGN_PORTS.has(port)
}

function refuse(code: string, detail: string): Refusal {
  return { ok: false, code, detail }
}

function tooLong(): Refusal {
  return refuse('too_long', `The URL has more than ${MAX_URL_LENGTH} characters in the form that is sent.`)
}

function notPublic(): Refusal {
  return refuse(
    'host_not_public',
    'The host of the URL is not one that can be reached on the public internet.',
  )
}

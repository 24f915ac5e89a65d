import { parseUrl } from './text-rules.ts'
import { mayChangeWebhook, type Grants, type PermissionFor } from './permissions.ts'

/** The part of a webhook's URL that is shown to every member. `isWhole`: nothing of path and query is left out. */
type ShownUrl = { scheme: string; host: string; path: string; isWhole: boolean }

/** In a name a longer host is cut at its start: its end identifies the owner. */
const MAX_HOST_LENGTH = 80

/** A segment this short is no secret. */
const MAX_PLAIN_LENGTH = 3
/** Lower-case words with at most two digits behind them, such as `webhooks`, `in-coming`, `v1`. */
const WORDS = /^[a-z]+(?:[-_.][a-z]+)*\d{0,2}$/
const MAX_WORDS_LENGTH = 12
/** Characters shown of a segment that may be a credential. */
const SHOWN_OF_OPAQUE = 2
const MAX_SEGMENTS = 4

/** Characters shown of the webhook's id; the last ones of a UUID are random. */
const SHORT_ID_LENGTH = 6

/**
 * Returns a readable name of a webhook: host and shortened path, such as `hooks.example.com/services/T0…`. Where that
 * omits something, the end of the webhook's id follows, so that webhooks on one host differ. It contains no user name,
 * password, query or fragment.
 */
export function nameWebhook(url: string, webhookId: string): string {
  const { host: whole, path, isWhole } = shownUrl(url)
  const host = whole.length <= MAX_HOST_LENGTH ? whole : `…${whole.slice(1 - MAX_HOST_LENGTH)}`
  const name = `${host}${path}`
  return isWhole && host === whole ? name : `${name} (${webhookId.slice(-SHORT_ID_LENGTH)})`
}

/** Returns a webhook's URL as `reader` sees it: shortened for members that may not change the webhook. */
export function urlFor(
  reader: Grants,
  { url, subscribedEventKeys }: { url: string; subscribedEventKeys: readonly string[] },
  permissionFor: PermissionFor,
): string {
  return mayChangeWebhook(reader, subscribedEventKeys, permissionFor) ? url : shortenUrl(url)
}

/** Returns a webhook's URL for members that may not change it: scheme, host and shortened path. */
export function shortenUrl(url: string): string {
  const { scheme, host, path } = shownUrl(url)
  return `${scheme}//${host}${path === '' ? '/' : path}`
}

/**
 * The path of a webhook's URL can be its credential (chat services), so it is shown up to the first segment that is not
 * plainly a word: that one is cut, and what follows is left out.
 */
function shownUrl(url: string): ShownUrl {
  const parsed = parseUrl(url)
  if (parsed === null) return { scheme: 'https:', host: 'an unknown host', path: '', isWhole: false }
  const { protocol: scheme, host, pathname, search } = parsed
  const path = shortenPath(pathname)
  return { scheme, host, path, isWhole: path === withoutRoot(pathname) && search === '' }
}

function shortenPath(pathname: string): string {
  const segments = withoutRoot(pathname).split('/').slice(1)
  const first = segments.findIndex((segment) => !isPlain(segment))
  const end = Math.min(first === -1 ? segments.length : first, MAX_SEGMENTS)
  const shown = segments.slice(0, end)
  const cut = segments[end]
  if (cut !== undefined) shown.push(`${cut.slice(0, SHOWN_OF_OPAQUE)}…`)
  return shown.map((segment) => `/${segment}`).join('')
}

function isPlain(segment: string): boolean {
  return segment.length <= MAX_PLAIN_LENGTH || (segment.length <= MAX_WORDS_LENGTH && WORDS.test(segment))
}

function withoutRoot(pathname: string): string {
  return pathname === '/' ? '' : pathname
}

/** Shortens a URL for the audit trail: its path and query may contain a credential. */
export function urlForAudit(url: string): string {
  return `${shortenUrl(url)}${new URL(url).search === '' ? '' : '?…'}`
}

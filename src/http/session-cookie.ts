import type { Context } from 'koa'
import { ProblemError } from '../errors.ts'

/** How a browser that asks over this connection keeps its session. */
export type SessionCookie = { name: string; attributes: string }

/** 32 random bytes as base64url. */
const TOKEN_SHAPE = /^[A-Za-z0-9_-]{43}$/

const LOOPBACK = /^(localhost|[\w.-]+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/i

/**
 * Over TLS: bound to this very host and never sent in clear (`__Host-`, RFC 6265bis). On this machine's own loopback,
 * where nobody listens in, a plain one: not every browser keeps a `Secure` cookie there. Null elsewhere: a key typed
 * into a page that came in clear is no secret any more.
 */
export function sessionCookieFor(ctx: Context, publicUrl: string): SessionCookie | null {
  const common = 'Path=/; HttpOnly; SameSite=Strict'
  if (ctx.secure || publicUrl.startsWith('https://'))
    return { name: '__Host-posthorn_session', attributes: `${common}; Secure` }
  return LOOPBACK.test(ctx.hostname) ? { name: 'posthorn_session', attributes: common } : null
}

/** The token that the browser sent, or null where there is none that could be one. */
export function readSessionToken(ctx: Context, cookie: SessionCookie | null): string | null {
  const token = cookie === null ? undefined : ctx.cookies.get(cookie.name, { signed: false })
  return token !== undefined && TOKEN_SHAPE.test(token) ? token : null
}

/** `Set-Cookie` that keeps the token until `expiresAt`, told as a time to go: the browser's clock may be wrong. */
export function keepSession({ name, attributes }: SessionCookie, token: string, expiresAt: Date): string {
  const seconds = Math.max(1, Math.round((expiresAt.getTime() - Date.now()) / 1_000))
  return `${name}=${token}; ${attributes}; Max-Age=${seconds}`
}

/** `Set-Cookie` that makes the browser forget. */
export function forgetSession({ name, attributes }: SessionCookie): string {
  return `${name}=; ${attributes}; Max-Age=0`
}

/**
 * 403 unless the request comes from a page of ours. Browsers say so themselves in `Sec-Fetch-Site`, which no page can
 * set; where they do not, over plain HTTP, `Origin` has to name the host that was asked.
 */
export function requireSameOrigin(ctx: Context): void {
  const site = ctx.get('sec-fetch-site')
  const isOurs = site === '' ? hostOf(ctx.get('origin')) === ctx.host : site === 'same-origin'
  if (isOurs) return
  throw new ProblemError('cross_site', {
    detail: 'With a session in a cookie only pages of this very site may change anything.',
  })
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null
}

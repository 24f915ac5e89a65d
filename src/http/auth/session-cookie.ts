import type { Context } from 'koa'
import { ProblemError } from '../../problem-error.ts'
import type { ApiDependencies } from '../api.ts'
import { hostOf, isLoopbackRequest } from '../middleware/requested-host.ts'

/** The cookie that carries a session on this connection. */
export type SessionCookie = { name: string; attributes: string }

/** 32 random bytes as base64url. */
const TOKEN_SHAPE = /^[A-Za-z0-9_-]{43}$/

/**
 * Returns the session cookie for a connection. Over TLS: bound to this host and never sent in clear (`__Host-`,
 * RFC 6265bis). Where pages of other origins may embed the developer area: one that browsers also send from within a
 * frame, and keep apart for each site around it (`Partitioned`, CHIPS); of another name, so that a browser never holds
 * both. On loopback, which cannot be overheard: a plain one, because not every browser keeps a `Secure` cookie there.
 * Null elsewhere: a key typed into a page that came in clear is no secret any more.
 */
export function sessionCookieFor(
  ctx: Context,
  { publicUrl, frameAncestors }: { publicUrl: string; frameAncestors: readonly string[] },
): SessionCookie | null {
  const common = 'Path=/; HttpOnly'
  if (ctx.secure || publicUrl.startsWith('https://'))
    return frameAncestors.length === 0
      ? { name: '__Host-posthorn_session', attributes: `${common}; SameSite=Strict; Secure` }
      : {
          name: '__Host-posthorn_framed_session',
          attributes: `${common}; SameSite=None; Secure; Partitioned`,
        }
  return isLoopbackRequest(ctx)
    ? { name: 'posthorn_session', attributes: `${common}; SameSite=Strict` }
    : null
}

/**
 * Returns the cookie of an operator's session, beside which the browser may have one of a member. No other page embeds the
 * operator's pages.
 */
export function operatorCookieFor(ctx: Context, { publicUrl }: { publicUrl: string }): SessionCookie | null {
  const cookie = sessionCookieFor(ctx, { publicUrl, frameAncestors: [] })
  return cookie === null ? null : { ...cookie, name: cookie.name.replace('session', 'operator_session') }
}

/** Throws 403 where the connection must not have a session cookie. */
export function requireSessionCookie(cookie: SessionCookie | null): SessionCookie {
  if (cookie !== null) return cookie
  throw new ProblemError('needs_tls', {
    detail:
      'Signing in works over https and on this machine itself. Behind a proxy that speaks TLS, the operator sets POSTHORN_PUBLIC_URL, or TRUSTED_PROXIES with X-Forwarded-Proto.',
  })
}

/** Returns the token that the browser sent, or null where there is none of the right shape. */
export function readSessionToken(ctx: Context, cookie: SessionCookie | null): string | null {
  const token = cookie === null ? undefined : ctx.cookies.get(cookie.name, { signed: false })
  return token !== undefined && TOKEN_SHAPE.test(token) ? token : null
}

/**
 * Returns the `Set-Cookie` that stores a token until `expiresAt` of PostgreSQL's clock. It uses `Max-Age`, because the
 * browser's clock may be wrong.
 */
export function storeSession(
  { clock }: Pick<ApiDependencies, 'clock'>,
  { name, attributes }: SessionCookie,
  { token, expiresAt }: { token: string; expiresAt: Date },
): string {
  const seconds = Math.max(1, Math.round((expiresAt.getTime() - clock.nowMs()) / 1_000))
  return `${name}=${token}; ${attributes}; Max-Age=${seconds}`
}

/** Returns the `Set-Cookie` that removes the token. */
export function clearSession({ name, attributes }: SessionCookie): string {
  return `${name}=; ${attributes}; Max-Age=0`
}

/**
 * Throws 403 unless the request comes from a page of this site. Browsers send `Sec-Fetch-Site`, which no page can set;
 * over plain HTTP they do not, and `Origin` has to name the requested host.
 */
export function requireSameOrigin(ctx: Context): void {
  const site = ctx.get('sec-fetch-site')
  const isSameOrigin = site === '' ? hostOf(ctx.get('origin')) === ctx.host : site === 'same-origin'
  if (isSameOrigin) return
  throw new ProblemError('cross_site', {
    detail: 'With a session in a cookie only pages of this very origin may ask for this.',
  })
}

/**
 * Returns whether no page made the request, as far as the browser says: an address was typed. A browser that says nothing
 * of itself is believed where its cookie is `SameSite=Strict`; one that is sent from within frames comes with requests
 * of every page.
 */
export function isFromNoPage(
  ctx: Context,
  { frameAncestors }: { frameAncestors: readonly string[] },
): boolean {
  const site = ctx.get('sec-fetch-site')
  return site === 'none' || (site === '' && frameAncestors.length === 0)
}

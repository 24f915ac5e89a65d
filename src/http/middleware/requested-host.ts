import type { Context, Middleware } from 'koa'
import { parseUrl } from '../../domain/text-rules.ts'
import { isLoopbackHost } from '../../outbound/host-names.ts'
import { badRequest, ProblemError } from '../../problem-error.ts'

/**
 * Throws 400 for a request target that is no URL, such as `http://[bad/`: reading its path would throw; and for more than
 * one `Host`: programs on the way of the request may each believe another one (RFC 9112, 3.2).
 */
export function requestTarget(): Middleware {
  return async (ctx, next) => {
    if (pathOf(ctx) === null) throw badRequest('malformed_path', 'The target of the request is not a URL.')
    const { rawHeaders } = ctx.req
    const hosts = rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host')
    if (hosts.length > 1) throw badRequest('repeated_host', 'The request has more than one Host header.')
    await next()
  }
}

/** Returns the path, or null when the request target is no URL. */
export function pathOf(ctx: { readonly path: string }): string | null {
  try {
    return ctx.path
  } catch {
    return null
  }
}

/**
 * Throws 421 unless the request names the host of `publicUrl`, where that is set. A page whose own name resolves to this
 * address (DNS rebinding) cannot pretend to be this service. A loopback URL stands for every loopback host.
 */
export function requireOwnHost(ctx: Context, publicUrl: string): void {
  if (publicUrl === '') return
  const { protocol, host, hostname } = new URL(publicUrl)
  const isOwn = isLoopbackHost(hostname)
    ? isLoopbackRequest(ctx)
    : hostOf(`${protocol}//${ctx.host}`) === host
  if (!isOwn) throw misdirected(`Pages and sessions are served at ${protocol}//${host} only.`)
}

/** Throws 421 unless the request names this machine's loopback: a page of another name is not of this machine. */
export function requireLoopbackHost(ctx: Context): void {
  if (!isLoopbackRequest(ctx)) throw misdirected('This page is served to a browser on this machine only.')
}

/** Whether the request names this machine's loopback, by name or address, with any port. */
export function isLoopbackRequest(ctx: Context): boolean {
  return isLoopbackHost(ctx.hostname.toLowerCase())
}

/** Returns the host of a URL in its canonical form, without the default port; null for what is no URL. */
export function hostOf(url: string): string | null {
  return parseUrl(url)?.host ?? null
}

function misdirected(detail: string): ProblemError {
  return new ProblemError('wrong_host', { detail })
}

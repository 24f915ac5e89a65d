import type { Middleware } from 'koa'
import { methodNotAllowed, notFound } from '../errors.ts'
import type { WebFiles } from './web-files.ts'

/**
 * Scripts, styles and answers of this very host and nothing else, nothing inline, no frame around the page. With
 * Trusted Types a text cannot become markup even by mistake: lit-html's own templates are the only way to make any.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types lit-html',
].join('; ')

/** The developer area at `/developer`, the API reference at `/docs`, and what they are made of below `/assets/`. */
export function webPages(files: WebFiles): Middleware {
  return async (ctx, next) => {
    const file = files.get(ctx.path)
    if (file === undefined) {
      if (ctx.path.startsWith('/assets/')) throw notFound('file')
      await next()
      return
    }
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD'])
    ctx.set({
      'content-security-policy': PAGE_POLICY,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      // Kept, but asked for each time: after an update nobody has half of the old page.
      'cache-control': 'no-cache',
      etag: file.etag,
    })
    ctx.status = 200
    if (ctx.fresh) {
      ctx.status = 304
      return
    }
    ctx.type = file.type
    ctx.body = file.body
  }
}

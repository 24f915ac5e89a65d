import type { Context, Middleware } from 'koa'
import { methodNotAllowed, notFound } from '../../problem-error.ts'
import type { WebFiles } from './web-files.ts'

/**
 * Scripts, styles and answers of this very host and nothing else, nothing inline. With
 * Trusted Types a text cannot become markup even by mistake: lit-html's own templates are the only way to make any, and
 * the worker that shows push messages the only script that a page starts.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types lit-html posthorn-push',
].join('; ')

/**
 * Of pictures, some of which the operator chose: opened by itself, an SVG is a document, which runs and loads nothing.
 * It contains its styles.
 */
const PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

/** A year, the longest that caches are asked for. */
const IMMUTABLE = 'public, max-age=31536000, immutable'

const ENTRANCE = '/developer'

/**
 * The developer area at `/developer`, to which `/` leads, the API reference at `/docs`, and what they are made of below
 * `/assets/`. `frameAncestors`: origins whose pages may embed the developer area; no other page, and no other origin.
 * `checkHost` throws where the pages are requested under a name that is not the service's.
 */
export function webPages(
  files: WebFiles,
  frameAncestors: readonly string[],
  checkHost: (ctx: Context) => void,
): Middleware {
  const embedders = frameAncestors.join(' ')
  return async (ctx, next) => {
    const file = files.get(ctx.path)
    if (file === undefined && ctx.path !== '/') {
      if (ctx.path.startsWith('/assets/')) throw notFound('file')
      await next()
      return
    }
    checkHost(ctx)
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD'])
    if (file === undefined) {
      ctx.status = 303
      ctx.redirect(ENTRANCE)
      return
    }
    const isEmbeddable = embedders !== '' && ctx.path === ENTRANCE
    // It can name no origin, and some browsers would obey it besides the policy.
    if (isEmbeddable) ctx.remove('x-frame-options')
    const policy = file.type.startsWith('image/') ? PICTURE_POLICY : PAGE_POLICY
    ctx.set({
      'content-security-policy': `${policy}; frame-ancestors ${isEmbeddable ? embedders : "'none'"}`,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      // What has no name of its content is revalidated each time: no browser mixes old and new files after an update.
      'cache-control': file.isImmutable ? IMMUTABLE : 'no-cache',
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

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Middleware } from 'koa'
import { methodNotAllowed, notFound } from '../../problem-error.ts'
import type { ApiDependencies } from '../api.ts'
import { requireOwnHost } from '../middleware/requested-host.ts'
import { OWN_BRAND, withBrand, type Brand } from './brand.ts'
import { bundlePages } from './bundle-pages.ts'

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
 * `/assets/`. Pages of `frameAncestors` may embed the developer area; no other page, and no other origin. Throws 421 where
 * the pages are requested under a name that is not the service's.
 */
export function webPages({
  brand,
  frameAncestors,
  publicUrl,
}: Pick<ApiDependencies, 'brand' | 'frameAncestors' | 'publicUrl'>): Middleware {
  const files = readWebFiles(brand)
  const embedders = frameAncestors.join(' ')
  return async (ctx, next) => {
    const file = files.get(ctx.path)
    if (file === undefined && ctx.path !== '/') {
      if (ctx.path.startsWith('/assets/')) throw notFound('file')
      await next()
      return
    }
    requireOwnHost(ctx, publicUrl)
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

/** A file as browsers get it. `isImmutable`: its path names its content. */
type WebFile = { body: Buffer; type: string; etag: string; isImmutable: boolean }

/** Files by the path of their URL. */
type WebFiles = ReadonlyMap<string, WebFile>

const FOLDER = fileURLToPath(new URL('../../web/pages/', import.meta.url))

/** Their addresses are promises; all else lies below `/assets/`. */
const PAGE_PATHS: Readonly<Record<string, string>> = {
  'developer.html': '/developer',
  'docs.html': '/docs',
  'operator.html': '/operator',
}

/** What has another ending is not for browsers. */
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.map': 'application/json',
}

/** Files of the sources that browsers get as they are. A worker's folder is its scope, so it keeps its path. */
export const UNBUNDLED: readonly string[] = ['icon.svg', 'app/push-worker.js']

const isSource = import.meta.url.endsWith('.ts')
let bundled: ReadonlyMap<string, Buffer> | undefined

/** Returns every file: of a build as it made them, of the sources bundled once for all of the process; with the brand. */
export function readWebFiles(brand: Brand = OWN_BRAND): WebFiles {
  return toWebFiles(withBrand(isSource ? readSources() : readBuild(), brand))
}

function readSources(): ReadonlyMap<string, Buffer> {
  return (bundled ??= new Map([
    ...UNBUNDLED.map((name) => [name, readFileSync(join(FOLDER, name))] as const),
    ...bundlePages(FOLDER, { withSourceMaps: true }),
  ]))
}

function readBuild(): ReadonlyMap<string, Buffer> {
  return new Map(
    readdirSync(FOLDER, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((file) => [relative(FOLDER, file).split(sep).join('/'), readFileSync(file)]),
  )
}

function toWebFiles(files: Iterable<readonly [name: string, body: Buffer]>): WebFiles {
  return new Map(
    [...files].map(([name, body]) => [PAGE_PATHS[name] ?? `/assets/${name}`, toWebFile(name, body)]),
  )
}

function toWebFile(name: string, body: Buffer): WebFile {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  // Weak: the answer may be compressed (RFC 9110, 8.8.1).
  const etag = `W/"${hash}"`
  return { body, type: TYPES[extname(name)] ?? '', etag, isImmutable: name.startsWith('bundled/') }
}

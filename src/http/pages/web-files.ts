import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OWN_BRAND, withBrand, type Brand } from './brand.ts'
import { bundlePages } from './bundle-pages.ts'

/** A file as browsers get it. `isImmutable`: its path names its content. */
type WebFile = { body: Buffer; type: string; etag: string; isImmutable: boolean }

/** Files by the path of their URL. */
export type WebFiles = ReadonlyMap<string, WebFile>

const FOLDER = fileURLToPath(new URL('../../web/pages/', import.meta.url))

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
  const files = withBrand(isSource ? readSources() : readBuild(), brand)
  return new Map([...files].map(([name, body]) => [pathOf(name), toWebFile(name, body)]))
}

/** Pages lie at the root under their names, which are promises; all else lies below `/assets/`. */
function pathOf(name: string): string {
  return name.endsWith('.html') ? `/${name.slice(0, -'.html'.length)}` : `/assets/${name}`
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

function toWebFile(name: string, body: Buffer): WebFile {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  // Weak: the answer may be compressed (RFC 9110, 8.8.1).
  const etag = `W/"${hash}"`
  return { body, type: TYPES[extname(name)] ?? '', etag, isImmutable: name.startsWith('bundled/') }
}

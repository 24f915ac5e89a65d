import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A file as browsers get it. */
type WebFile = { body: Buffer; type: string; etag: string }

/** Files by the path of their URL. */
export type WebFiles = ReadonlyMap<string, WebFile>

const PAGES = fileURLToPath(new URL('../../web/pages/', import.meta.url))

/** Their addresses are promises; all else lies below `/assets/`. */
const PAGE_PATHS: Readonly<Record<string, string>> = {
  'developer.html': '/developer',
  'docs.html': '/docs',
}

const SCRIPT = 'text/javascript; charset=utf-8'

/** What has another ending is not for browsers. */
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': SCRIPT,
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The modules of lit-html that the pages use; they import each other by relative paths, and nothing else. */
const LIT_HTML = [
  'lit-html.js',
  'directive.js',
  'directive-helpers.js',
  'directives/keyed.js',
  'directives/live.js',
  'directives/repeat.js',
]

/** Reads every file once; some hundred kilobytes. */
export function readWebFiles(): WebFiles {
  const files = new Map<string, WebFile>()
  for (const entry of readdirSync(PAGES, { recursive: true, withFileTypes: true })) {
    const type = TYPES[extname(entry.name)]
    if (!entry.isFile() || type === undefined) continue
    const file = join(entry.parentPath, entry.name)
    const name = relative(PAGES, file).split(sep).join('/')
    files.set(PAGE_PATHS[name] ?? `/assets/${name}`, toWebFile(file, type))
  }
  // Node resolves to the build for servers, in a folder next to the one for browsers.
  const litHtml = dirname(dirname(createRequire(import.meta.url).resolve('lit-html')))
  for (const name of LIT_HTML) files.set(`/assets/lit-html/${name}`, toWebFile(join(litHtml, name), SCRIPT))
  return files
}

function toWebFile(file: string, type: string): WebFile {
  const body = readFileSync(file)
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  // Weak: the answer may be compressed (RFC 9110, 8.8.1).
  return { body, type, etag: `W/"${hash}"` }
}

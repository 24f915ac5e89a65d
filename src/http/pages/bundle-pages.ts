import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import type * as Esbuild from 'esbuild'

/** The pages; each names its scripts and its styles as sources below `/assets/`. */
const PAGES = ['developer.html', 'docs.html', 'operator.html']

/** Programs that verify a signature, below docs/verify, by the name of their language. */
const VERIFY_FILES = { 'Node.js': 'node.mjs', Python: 'python.py', Go: 'go/main.go', Java: 'Verify.java' }

const STYLE_LINK = / *<link rel="stylesheet" href="\/assets\/([^"]+)" \/>\n/g
const SCRIPT_SOURCE = /(?<=<script (?:type="module" )?src="\/assets\/)[^"]+/g

/**
 * Bundles the pages of a folder: each script and one stylesheet for each page, in `bundled/`, named after their content.
 * Returns these and the pages, by their paths in the folder, with source maps where wanted. Takes about 0.1 s. Needs
 * esbuild, which an installation does not have: its build has made the files.
 */
export function bundlePages(folder: string, options: { withSourceMaps: boolean }): Map<string, Buffer> {
  const pages = PAGES.map((page) => ({ page, html: readFileSync(join(folder, page), 'utf8') }))
  const sources = new Set(pages.flatMap(({ html }) => html.match(SCRIPT_SOURCE) ?? []))
  const files = new Map<string, Buffer>()
  const scripts = new Map<string, string>()
  for (const [source, { script, map }] of bundleScripts(folder, [...sources], options)) {
    const path = contentPath(source.slice(0, -'.js'.length).replaceAll('/', '-'), script, 'js')
    scripts.set(source, path)
    files.set(path, map === undefined ? script : linked(script, path))
    if (map !== undefined) files.set(`${path}.map`, map)
  }
  for (const { page, html } of pages) {
    const [first, ...others] = [...html.matchAll(STYLE_LINK)]
    const styles = [first, ...others].map((link) => readFileSync(join(folder, link?.[1] ?? '')))
    const style = Buffer.concat(styles)
    const stylePath = contentPath(basename(page, '.html'), style, 'css')
    files.set(stylePath, style)
    const bundled = others
      .reduce((text, [link]) => text.replace(link, ''), html)
      .replace(first?.[1] ?? '', stylePath)
      .replaceAll(SCRIPT_SOURCE, (source) => scripts.get(source) ?? source)
    files.set(page, Buffer.from(withPreload(bundled)))
  }
  return files
}

/** A module is fetched before what stands between it and the beginning of the page has been read. */
function withPreload(html: string): string {
  const [, path = ''] = /<script type="module" src="([^"]+)">/.exec(html) ?? []
  return html.replace('</title>\n', `</title>\n    <link rel="modulepreload" href="${path}" />\n`)
}

/** Returns the path of a file that is named after its content, and so kept for good by caches. */
export function contentPath(name: string, content: Buffer, extension: string): string {
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 16)
  return `bundled/${name}-${hash}.${extension}`
}

type Bundle = { script: Buffer; map?: Buffer | undefined }

/** Returns the bundle of each source. */
function bundleScripts(
  folder: string,
  sources: readonly string[],
  { withSourceMaps }: { withSourceMaps: boolean },
): [source: string, Bundle][] {
  // Loaded only here, and synchronously: the pages are part of an app, whose creation waits for nothing.
  const { buildSync } = createRequire(import.meta.url)('esbuild') as typeof Esbuild
  const { outputFiles } = buildSync({
    entryPoints: sources.map((source) => join(folder, source)),
    bundle: true,
    minify: true,
    // Of a script that is no module too, nothing becomes global.
    format: 'iife',
    target: 'es2022',
    sourcemap: withSourceMaps ? 'external' : false,
    define: { VERIFY_SAMPLES: JSON.stringify(verifySamples()) },
    outbase: folder,
    outdir: folder,
    write: false,
    logLevel: 'silent',
  })
  const outputs = new Map(outputFiles.map(({ path, contents }) => [path, Buffer.from(contents)]))
  return sources.map((source) => {
    const path = join(folder, source)
    return [source, { script: outputs.get(path) ?? Buffer.of(), map: outputs.get(`${path}.map`) }]
  })
}

/** Returns the programs of docs/verify, which tests run. */
function verifySamples(): { language: string; program: string }[] {
  return Object.entries(VERIFY_FILES).map(([language, file]) => {
    const program = readFileSync(new URL(`../../../docs/verify/${file}`, import.meta.url), 'utf8')
    return { language, program: program.trimEnd() }
  })
}

function linked(script: Buffer, path: string): Buffer {
  return Buffer.concat([script, Buffer.from(`//# sourceMappingURL=${basename(path)}.map\n`)])
}

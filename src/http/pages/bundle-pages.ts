import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import type * as Esbuild from 'esbuild'

/** The pages; each names its script and its styles as sources below `/assets/`. */
const PAGES = ['developer.html', 'docs.html']

const STYLE_LINK = / *<link rel="stylesheet" href="\/assets\/([^"]+)" \/>\n/g
const SCRIPT_SOURCE = /(?<=<script type="module" src="\/assets\/)[^"]+/

/**
 * Bundles the pages of a folder: one script and one stylesheet for each, in `bundled/`, named after their content.
 * Returns these and the pages, by their paths in the folder, with source maps where wanted. Takes about 0.1 s. Needs
 * esbuild, which an installation does not have: its build has made the files.
 */
export function bundlePages(folder: string, options: { withSourceMaps: boolean }): Map<string, Buffer> {
  const pages = PAGES.map((page) => ({ page, html: readFileSync(join(folder, page), 'utf8') }))
  const sources = pages.map(({ page, html }) => [
    nameOf(page),
    join(folder, SCRIPT_SOURCE.exec(html)?.[0] ?? ''),
  ])
  const outputOf = bundleScripts(Object.fromEntries(sources) as Record<string, string>, options)
  const files = new Map<string, Buffer>()
  for (const { page, html } of pages) {
    const name = nameOf(page)
    const styles = [...html.matchAll(STYLE_LINK)]
    const style = Buffer.concat(styles.map(([, path = '']) => readFileSync(join(folder, path))))
    const stylePath = pathOf(name, style, 'css')
    files.set(stylePath, style)
    const script = outputOf(`${name}.js`)
    const scriptPath = pathOf(name, script, 'js')
    files.set(scriptPath, options.withSourceMaps ? linked(script, scriptPath) : script)
    if (options.withSourceMaps) files.set(`${scriptPath}.map`, outputOf(`${name}.js.map`))
    const bundled = styles
      .slice(1)
      .reduce((text, [link]) => text.replace(link, ''), html)
      .replace(styles[0]?.[1] ?? '', stylePath)
      .replace(SCRIPT_SOURCE, scriptPath)
      .replace('</title>\n', `</title>\n    <link rel="modulepreload" href="/assets/${scriptPath}" />\n`)
    files.set(page, Buffer.from(bundled))
  }
  return files
}

function nameOf(page: string): string {
  return basename(page, '.html')
}

function pathOf(name: string, content: Buffer, extension: string): string {
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 16)
  return `bundled/${name}-${hash}.${extension}`
}

/** Returns the content of each output, by its name. */
function bundleScripts(
  entryPoints: Record<string, string>,
  { withSourceMaps }: { withSourceMaps: boolean },
): (name: string) => Buffer {
  // Loaded only here, and synchronously: the pages are part of an app, whose creation waits for nothing.
  const { buildSync } = createRequire(import.meta.url)('esbuild') as typeof Esbuild
  const { outputFiles } = buildSync({
    entryPoints,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    sourcemap: withSourceMaps ? 'external' : false,
    outdir: 'bundled',
    write: false,
    logLevel: 'silent',
  })
  const outputs = new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]))
  return (name) => outputs.get(name) ?? Buffer.of()
}

function linked(script: Buffer, path: string): Buffer {
  return Buffer.concat([script, Buffer.from(`//# sourceMappingURL=${basename(path)}.map\n`)])
}

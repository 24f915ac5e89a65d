import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'
import { bundlePages } from '../http/pages/bundle-pages.ts'
import { UNBUNDLED } from '../http/pages/web-pages.ts'

/**
 * `npm run build`: compiles to dist/, copies what is read as it is, and bundles the pages and the workflows once, so
 * that no process needs a bundler. With a folder as its argument it builds there, as the tests have it, and leaves the
 * types to `npm run check`. Two builds of the same sources are equal, wherever they are made.
 */
const root = fileURLToPath(new URL('../../', import.meta.url))
const [elsewhere] = process.argv.slice(2)
const dist = elsewhere ?? `${root}dist`

rmSync(dist, { recursive: true, force: true })
execFileSync(
  process.execPath,
  [
    `${root}node_modules/typescript/bin/tsc`,
    ...['-p', `${root}tsconfig.build.json`, '--outDir', dist],
    ...(elsewhere === undefined ? [] : ['--noCheck']),
  ],
  { stdio: 'inherit' },
)
const pages = `${root}src/web/pages/`
for (const name of UNBUNDLED) cpSync(`${pages}${name}`, `${dist}/src/web/pages/${name}`)
for (const [name, content] of bundlePages(pages, { withSourceMaps: false })) {
  const file = `${dist}/src/web/pages/${name}`
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}
// Statements and the built-in catalogue are read as they are.
for (const folder of ['src/catalogue', 'src/deliveries/protocol', 'src/relay'])
  cpSync(`${root}${folder}`, `${dist}/${folder}`, {
    recursive: true,
    filter: (source) => !/\.(ts|mjs)$/.test(source),
  })
const { code } = await bundleWorkflowCode({
  workflowsPath: `${root}workflows/index.ts`,
  // Columns depend on the length of this folder's path.
  webpackConfigHook: (config) => ({ ...config, devtool: 'inline-cheap-module-source-map' }),
})
writeFileSync(`${dist}/workflow-bundle.js`, withoutPaths(code))

/** Takes out of the bundle's source map what differs between two builds: the path of this folder, and a hash of it. */
function withoutPaths(bundle: string): string {
  return bundle.replace(/(?<=;base64,)\S+(?=\s*$)/, (encoded) => {
    const map = Buffer.from(encoded, 'base64').toString().replaceAll(root, '/')
    return Buffer.from(map.replaceAll(/workflow-bundle-\w+/g, 'workflow-bundle')).toString('base64')
  })
}

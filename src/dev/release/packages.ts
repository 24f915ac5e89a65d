import { chmodSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import packageJson from '../../../package.json' with { type: 'json' }
import { runTool } from '../run-tool.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const PROGRAM = 'src/cli/posthorn-listen.js'
const COMPILE_TIMEOUT_MS = 120_000
const PACK_TIMEOUT_MS = 60_000
const README = `# posthorn-listen

The command \`posthorn listen\` without the server: it follows the event stream of a Posthorn and sends each event to a
receiver on your machine, signed as webhooks are. \`npx posthorn-listen --help\` shows how.
`

/** Compiles the program `posthorn-listen` with all that it imports into `folder`, as an npm package. */
export async function buildListenPackage(folder: string): Promise<void> {
  await runTool({
    command: process.execPath,
    args: [
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      ...['-p', join(ROOT, 'tsconfig.listen.json'), '--outDir', folder],
    ],
    timeoutMs: COMPILE_TIMEOUT_MS,
  })
  chmodSync(join(folder, PROGRAM), 0o755)
  const { version, license, engines } = packageJson
  const manifest = {
    name: 'posthorn-listen',
    version,
    description: 'Forwards the events of a Posthorn to a receiver on your machine, signed as webhooks are',
    license,
    type: 'module',
    engines,
    bin: { 'posthorn-listen': PROGRAM },
    dependencies: dependenciesOf(folder),
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  writeFileSync(join(folder, 'README.md'), README)
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
}

/** Returns the packages that the compiled files import, with the versions of this repository. */
function dependenciesOf(folder: string): Record<string, string> {
  const versions: Record<string, string> = packageJson.dependencies
  const imported = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.js'))
    .flatMap((file) => [
      ...readFileSync(join(folder, file), 'utf8').matchAll(/\b(?:from|import\() ?'([^'.][^']*)'/g),
    ])
    .map(([, specifier = '']) => specifier)
    .filter((specifier) => !specifier.startsWith('node:'))
  return Object.fromEntries(
    [...new Set(imported)].sort().map((name) => {
      const version = versions[name]
      if (version === undefined)
        throw new Error(`posthorn-listen imports ${name}, which package.json does not list`)
      return [name, version]
    }),
  )
}

/** Packs a folder that is an npm package into `destination`, and returns the path of the tarball. */
export async function packFolder(folder: string, destination: string): Promise<string> {
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', destination]
  const lines = await runTool({ command: 'npm', args, cwd: folder, timeoutMs: PACK_TIMEOUT_MS })
  return join(destination, lines.trim().split('\n').at(-1) ?? '')
}

import { chmodSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import packageJson from '../../../package.json' with { type: 'json' }
import { runTool } from '../guarded-process.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const PROGRAM = 'src/cli/posthorn-listen.js'
const COMPILE_TIMEOUT_MS = 120_000
const PACK_TIMEOUT_MS = 60_000
const README = `# posthorn-listen

The command \`posthorn listen\` without the server: it follows the event stream of a Posthorn and sends each event to a
receiver on your machine, signed as webhooks are. \`posthorn-listen --help\` shows how.
`

/**
 * Builds Posthorn into `folder` as an npm package: what an image has, with the exact versions of all packages that it
 * needs (npm-shrinkwrap.json).
 */
export async function buildServerPackage(folder: string): Promise<void> {
  const build = join(ROOT, 'src/cli/build.ts')
  await runTool({
    command: process.execPath,
    args: ['--import', 'tsx', build, join(folder, 'dist')],
    cwd: ROOT,
    timeoutMs: COMPILE_TIMEOUT_MS,
  })
  const { name, version, description, license, type, engines, bin, dependencies } = packageJson
  writeJson(join(folder, 'package.json'), {
    ...{ name, version, description, license, private: true, type, engines, bin, dependencies },
  })
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as LockFile
  writeJson(join(folder, 'npm-shrinkwrap.json'), withoutDevelopment(lock))
  for (const file of ['src/cli/bin.mjs', 'LICENSE', 'CHANGELOG.md', '.env.example'])
    cpSync(join(ROOT, file), join(folder, file))
}

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
  writeJson(join(folder, 'package.json'), manifest)
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
    // Without the path in the package, as in `eventsource-parser/stream`.
    .map(([, specifier = '']) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? '')
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

export function writeJson(file: string, value: object): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
}

/** Packs a folder that is an npm package into `destination`, and returns the path of the tarball. */
export async function packFolder(folder: string, destination: string): Promise<string> {
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', destination]
  const lines = await runTool({ command: 'npm', args, cwd: folder, timeoutMs: PACK_TIMEOUT_MS })
  return join(destination, lines.trim().split('\n').at(-1) ?? '')
}

/** An entry of `packages` in package-lock.json. */
type LockedPackage = {
  version?: string
  license?: string
  dev?: true
  hasInstallScript?: true
}

/** package-lock.json, as far as it is read here. */
export type LockFile = { packages: Record<string, LockedPackage> }

/** Licences of which a package that runs in production has one: none asks more of a user than to keep its text. */
export const ALLOWED_LICENCES = [
  '0BSD',
  'Apache-2.0',
  'Apache-2.0 AND MIT',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC-BY-4.0',
  'ISC',
  'MIT',
  'MIT-0',
  // Of files that are used unchanged.
  'MPL-2.0',
  'Unlicense',
]

/** Packages whose package.json names no licence, and the one that their LICENSE file has. */
const UNNAMED_LICENCES: Record<string, string> = { unionfs: 'Unlicense' }

/** A package that runs in production. */
export type RuntimePackage = { name: string; version: string; licence: string; hasInstallScript: boolean }

/** Returns the lock file of an installation without the packages for development. */
function withoutDevelopment<L extends LockFile>(lock: L): L {
  const packages = Object.entries(lock.packages)
    .filter(([, { dev }]) => dev !== true)
    .map(([path, entry]) => [path, path === '' ? { ...entry, devDependencies: undefined } : entry] as const)
  return { ...lock, packages: Object.fromEntries(packages) }
}

/** Returns the packages that run in production, those of other platforms included, by name and version. */
export function runtimePackages(lock: LockFile): RuntimePackage[] {
  return Object.entries(withoutDevelopment(lock).packages)
    .filter(([path]) => path !== '')
    .map(([path, { version = '', license, hasInstallScript = false }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      return { name, version, licence: license ?? UNNAMED_LICENCES[name] ?? 'unknown', hasInstallScript }
    })
    .sort((one, other) => `${one.name} ${one.version}`.localeCompare(`${other.name} ${other.version}`, 'en'))
}

/** Returns the entry of this version in the changelog, or that of what is not released yet. */
export function releaseNotes(changelog: string): string {
  const entries = changelog.split(/^(?=## )/m)
  const find = (title: string): string | undefined =>
    entries.find((entry) => entry.startsWith(`## [${title}]`))
  const entry = find(packageJson.version) ?? find('Unreleased')
  if (entry === undefined) throw new Error(`CHANGELOG.md has no entry for ${packageJson.version}`)
  return `# Posthorn ${packageJson.version}\n\n${entry.trimEnd()}\n`
}

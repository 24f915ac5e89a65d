import { join } from 'node:path'
import { provideNpmProgram } from './npm-program.ts'

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
    { name: platformPackage(), version, program: join('bin', 'node'), cacheName: 'node' },
    cacheDir,
    () => print(`Installing Node.js ${version} (once, 50 MB) …`),
  )
}

/** What the package `node` installs on this platform. */
function platformPackage(): string {
  const platform = `${process.platform}-${process.arch}`
  return platform === 'darwin-arm64' ? `node-bin-${platform}` : `node-${platform}`
}

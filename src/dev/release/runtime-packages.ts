/** An entry of `packages` in package-lock.json. */
type LockedPackage = {
  version?: string
  license?: string
  dev?: true
  optional?: true
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
export function withoutDevelopment<L extends LockFile>(lock: L): L {
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

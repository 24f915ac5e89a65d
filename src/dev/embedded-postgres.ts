import { Client, escapeIdentifier } from 'pg'
import { freePort } from '../free-port.ts'
import { startGuardedProcess } from './guarded-process.ts'
import {
  awaitEarlierServer,
  type InstalledPostgres,
  providePostgresCluster,
  providePostgresUser,
  findInstalledPostgres,
  findPostgresHome,
  findPostgresPrograms,
} from './postgres-cluster.ts'

/** Where PostgreSQL keeps its data and how it is started. */
export type EmbeddedPostgresOptions = {
  /** Created when missing. What is in it survives stop and start. */
  dataDir: string
  /** A free one when not given. */
  port?: number
  logFile: string
  print: (line: string) => void
  /** Further arguments of `postgres`, such as `-c fsync=off` for tests: `['-c', 'fsync=off']`. */
  flags?: string[]
  /** The release to start; the one in package.json when not given. */
  installed?: InstalledPostgres
  /** That of this process when not given. */
  env?: NodeJS.ProcessEnv
}

/** A PostgreSQL server of our own on 127.0.0.1. */
export type EmbeddedPostgres = {
  port: number
  /** URL of the database `postgres`, as its superuser. */
  adminUrl: string
  databaseUrl(name: string): string
  /** Creates a database, as a copy of `template` if given; one that exists already is left as it is. */
  createDatabase(name: string, template?: string): Promise<void>
  stop(): Promise<void>
  /** Settles when the server is gone, for whatever reason. */
  exited: Promise<unknown>
}

const READY_TIMEOUT_MS = 60_000
const CONNECT_TIMEOUT_MS = 2_000
const DUPLICATE_DATABASE = '42P04'

/**
 * Starts PostgreSQL and waits until it answers. It ends with this process, however that happens.
 *
 * @throws Error saying what stands in the way: no package for the platform, no user to run as, the server's log
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, logFile, print, flags = [], env } = options
  const user = providePostgresUser(print)
  const installed = options.installed ?? (await findInstalledPostgres())
  const programs = await findPostgresPrograms(installed, user, print)
  const home = findPostgresHome(dataDir, user, print)
  const cluster = await providePostgresCluster(home, programs, user, print)
  await awaitEarlierServer(cluster, print)

  const port = options.port ?? (await freePort())
  const databaseUrl = (name: string): string =>
    `postgres://postgres:${cluster.password}@127.0.0.1:${port}/${encodeURIComponent(name)}`
  const adminUrl = databaseUrl('postgres')
  // No socket file: its default folder is often missing, and its path may be too long.
  const settings = [
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    'unix_socket_directories=',
    '-c',
    'lc_messages=C',
  ]
  const server = await startGuardedProcess({
    name: 'PostgreSQL',
    command: programs.postgres,
    args: ['-D', cluster.folder, '-p', String(port), ...settings, ...flags],
    cwd: cluster.folder,
    ...user,
    ...(env !== undefined && { env }),
    // Fast shutdown: closes connections, rolls back what is open, ends in good order.
    stopSignal: 'SIGINT',
    logFile,
    isReady: async () => {
      await query(adminUrl, 'select 1')
      return true
    },
    readyTimeoutMs: READY_TIMEOUT_MS,
  })
  return {
    port,
    adminUrl,
    databaseUrl,
    createDatabase: (name, template) => createDatabase(adminUrl, name, template),
    stop: () => server.stop(),
    exited: server.exited,
  }
}

async function createDatabase(adminUrl: string, name: string, template?: string): Promise<void> {
  const copy = template === undefined ? '' : ` template ${escapeIdentifier(template)}`
  try {
    await query(adminUrl, `create database ${escapeIdentifier(name)}${copy}`)
  } catch (error) {
    if ((error as { code?: string }).code !== DUPLICATE_DATABASE) throw error
  }
}

async function query(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS })
  // A connection that breaks while idle fails its next query.
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query(sql)
  } finally {
    await client.end()
  }
}

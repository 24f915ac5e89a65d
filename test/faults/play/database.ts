import { spawnSync } from 'node:child_process'
import { chmodSync, createWriteStream, mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { DataSource } from 'typeorm'
import { migrate } from '../../../src/cli/migrate.ts'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { startEmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts'
import { freePort } from '../../../src/free-port.ts'
import { nowMs } from './clock.ts'

/** A PostgreSQL server of the play's own, which it can crash and exhaust. */
export type PlayDatabase = {
  url: string
  /** Past all proxies; fails while the server is down. */
  dataSource: DataSource
  /** Runs a query, again and again while the server is down. */
  query<Row>(statement: string, parameters?: unknown[]): Promise<Row[]>
  /** As `pg_ctl stop -m immediate` does: nothing is written or finished. */
  crash(): Promise<void>
  start(): Promise<void>
  /**
   * Leaves no byte on the server's disk until the returned function is called. Does nothing where the play could not give
   * it a disk of its own.
   */
  fillDisk(): Promise<() => Promise<void>>
  /** Takes every connection that there is, in place of those that are open, until the returned function is called. */
  exhaust(): Promise<() => Promise<void>>
  /** Has writes of this kind fail with an SQLSTATE until the returned function is called. */
  failWrites(writes: string, sqlstate: string): Promise<() => Promise<void>>
  /** Holds the locks of webhooks in one transaction until the returned function is called. */
  lock(webhookIds: readonly string[]): Promise<() => Promise<void>>
  close(): Promise<void>
}

/** What was committed survives a crash of the server, if not one of the machine. */
const FLAGS = [
  'fsync=off',
  'full_page_writes=off',
  'track_commit_timestamp=on',
  'max_connections=110',
  'max_wal_size=128MB',
]
/** Many times what a play of ten minutes writes. */
const DISK_SIZE = '512m'
const QUERY_LIMIT_MS = 60_000
const MAX_HOGS = 150

/** Which updates of a delivery are which. */
const UPDATES = `CASE
  WHEN NEW.state = 'in_progress' AND OLD.owner IS DISTINCT FROM NEW.owner THEN 'claim'
  WHEN NEW.state = 'in_progress' AND OLD.lease_until IS DISTINCT FROM NEW.lease_until THEN 'lease'
  WHEN NEW.state = OLD.state AND OLD.sweep_at IS DISTINCT FROM NEW.sweep_at THEN 'sweep'
  ELSE 'other' END`

/** `env`: of the server, in addition to what this process has. */
export async function createPlayDatabase(env: Record<string, string> = {}): Promise<PlayDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-play-database-'))
  // PostgreSQL does not run as root, and its user needs access.
  chmodSync(folder, 0o755)
  const isDisk = mountDisk(folder)
  const port = await freePort()
  const run = () =>
    startEmbeddedPostgres({
      dataDir: join(folder, 'postgres'),
      port,
      logFile: join(folder, 'log'),
      flags: FLAGS.flatMap((flag) => ['-c', flag]),
      print: () => undefined,
      env: { ...process.env, ...env },
    })
  let isRunning = true
  const start = async (): Promise<Awaited<ReturnType<typeof run>>> => {
    const started = await run()
    isRunning = true
    void started.exited.then(() => (isRunning = false))
    return started
  }
  let server = await start()
  await server.createDatabase('play')
  const url = server.databaseUrl('play')
  await migrate(url)
  const dataSource = createDataSource({ url, poolSize: 10 })
  await dataSource.initialize()
  await createFaultTriggers(dataSource)

  async function query<Row>(statement: string, parameters: unknown[] = []): Promise<Row[]> {
    const deadline = nowMs() + QUERY_LIMIT_MS
    for (;;) {
      try {
        return await dataSource.query<Row[]>(statement, parameters)
      } catch (error) {
        if (nowMs() > deadline) throw error
        await delay(200)
      }
    }
  }

  /** Returns null where the server has none left. */
  async function connect(): Promise<pg.Client | null> {
    const client = new pg.Client({ connectionString: url, application_name: 'play' })
    client.on('error', () => undefined)
    try {
      await client.connect()
      return client
    } catch {
      return null
    }
  }

  return {
    url,
    dataSource,
    query,
    async crash() {
      const pid = Number(readFileSync(join(folder, 'postgres/cluster/postmaster.pid'), 'utf8').split('\n')[0])
      process.kill(pid, 'SIGQUIT')
      await server.exited
    },
    async start() {
      server = await start()
    },
    async fillDisk() {
      if (!isDisk) return () => Promise.resolve()
      const filler = join(folder, 'filler')
      await pipeline(zeros(), createWriteStream(filler)).catch(() => undefined)
      return async () => {
        await rm(filler)
        // It ends where it cannot write its log; where it is restarting by itself, it goes on with what is free now.
        await delay(1_000)
        if (!isRunning) server = await start()
      }
    },
    async exhaust() {
      const hogs: pg.Client[] = []
      const first = await connect()
      for (let count = 0; count < MAX_HOGS; count++) {
        const hog = await connect()
        if (hog !== null) hogs.push(hog)
        else if (first === null) break
        // The connections of Posthorn go one by one, and their places are taken before it has new ones.
        else
          await first
            .query(
              `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = 'play' AND application_name = 'posthorn' ORDER BY random() LIMIT 1`,
            )
            .catch(() => undefined)
      }
      return async () => {
        for (const client of [first, ...hogs]) await client?.end().catch(() => undefined)
      }
    },
    async failWrites(writes, sqlstate) {
      await query('INSERT INTO play_fault VALUES ($1, $2)', [writes, sqlstate])
      return async () => {
        await query('DELETE FROM play_fault WHERE writes = $1', [writes])
      }
    },
    async lock(webhookIds) {
      const client = await connect()
      await client?.query('BEGIN').catch(() => undefined)
      for (const id of webhookIds)
        await client
          ?.query('SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))', [id])
          .catch(() => undefined)
      return async () => {
        await client?.end().catch(() => undefined)
      }
    },
    async close() {
      await dataSource.destroy().catch(() => undefined)
      await server.stop()
      if (isDisk) spawnSync('umount', ['-l', folder])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Gives the folder a disk of its own in memory; false where this is not allowed. */
function mountDisk(folder: string): boolean {
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_SIZE},mode=755`, 'tmpfs', folder])
  return status === 0
}

function* zeros(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(1024 * 1024)
}

/** The triggers stand from the begin: creating them in mid-play would have to wait for paused writers. */
async function createFaultTriggers(dataSource: DataSource): Promise<void> {
  await dataSource.query('CREATE TABLE play_fault (writes text NOT NULL, sqlstate text NOT NULL)')
  await dataSource.query(`CREATE FUNCTION play_fault() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE wanted text;
    BEGIN
      IF NOT EXISTS (SELECT 1 FROM play_fault) THEN RETURN NEW; END IF;
      IF TG_TABLE_NAME = 'attempt' THEN
        SELECT sqlstate INTO wanted FROM play_fault WHERE writes = 'record' LIMIT 1;
      ELSE
        SELECT sqlstate INTO wanted FROM play_fault WHERE writes = ${UPDATES} LIMIT 1;
      END IF;
      IF wanted IS NOT NULL THEN RAISE EXCEPTION 'injected fault' USING ERRCODE = wanted; END IF;
      RETURN NEW;
    END $$`)
  for (const [table, event] of [
    ['attempt', 'INSERT'],
    ['delivery', 'UPDATE'],
  ])
    await dataSource.query(
      `CREATE TRIGGER play_fault BEFORE ${event} ON ${table} FOR EACH ROW EXECUTE FUNCTION play_fault()`,
    )
}

import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { migrate } from '../../src/cli/migrate.ts'
import { createStack, type Stack } from '../../src/process/shutdown-stack.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { createCertificate } from '../helpers/receivers/receiver.ts'
import { installPosthorn } from '../helpers/runner/installation.ts'
import { createEngines, type Engines } from './engines/engine.ts'
import { startGenerator, type Generator } from './harness/generator.ts'
import { startReceiver, type Receiver } from './harness/receiver.ts'
import { cpuWithChildren } from './measure/cpu.ts'
import { postmasterOf } from './measure/postmaster-of.ts'
import type { BenchOptions } from './scenario.ts'

/** What all scenarios of a run share. */
export type Rig = {
  folder: string
  postgres: EmbeddedPostgres
  /** Processor time in ms so far of PostgreSQL with all its backends. */
  postgresCpu(): number
  /** A migrated, empty database. */
  createDatabase(): Promise<string>
  engines: Engines
  generator: Generator
  receiver: Receiver
  /** The `posthorn` command of an installation as in production: compiled. */
  posthornBin: string
  posthornLog: string
  /** Settings that every Posthorn of the run needs. */
  posthornEnv: Record<string, string>
  /** Posthorns of each stage. */
  processes: number
  quick: boolean
  /** What is to be stopped, if it is still there, before the rig itself. */
  onStop(stop: () => Promise<void>): void
}

/** As in docker-compose.yml; everything else as PostgreSQL comes, so commits wait for the disk. */
const POSTGRES_SETTINGS = ['max_connections=300', 'shared_preload_libraries=pg_stat_statements']

const TEMPLATE = 'posthorn_template'

/** Starts it all; what it starts goes onto `stack`, which the caller stops. */
export async function startRig(
  { engine, shards, processes, tls, quick }: BenchOptions,
  stack: Stack,
  say: (line: string) => void,
): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-bench-'))
  // PostgreSQL does not run as root: its user has to get in.
  chmodSync(folder, 0o755)
  stack.push('the folder', () => rm(folder, { recursive: true, force: true }))
  say('building Posthorn')
  const posthornBin = await installPosthorn(join(folder, 'posthorn'))
  const engines = await createEngines(engine, { folder, shards, say })
  stack.push('the engines', () => engines.stop())
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    flags: POSTGRES_SETTINGS.flatMap((setting) => ['-c', setting]),
    print: say,
  })
  stack.push('PostgreSQL', () => postgres.stop())
  await prepare(postgres)
  const postmaster = await postmasterOf(postgres.adminUrl)
  const certificate = tls ? await createCertificate() : null
  if (certificate !== null)
    stack.push('the certificate', () => rm(dirname(certificate.file), { recursive: true }))
  const receiver = await startReceiver(certificate)
  stack.push('the receiver', () => receiver.stop())
  const generator = startGenerator()
  stack.push('the generator', () => generator.stop())
  const late = createStack()
  stack.push('the stages', async () => {
    await late.stop()
  })
  return {
    folder,
    postgres,
    postgresCpu: () => cpuWithChildren(postmaster),
    async createDatabase() {
      const name = `bench_${randomUUID().replaceAll('-', '')}`
      await postgres.createDatabase(name, TEMPLATE)
      return name
    },
    engines,
    generator,
    receiver,
    posthornBin,
    posthornLog: join(folder, 'posthorn.log'),
    // The receivers' certificate is its own authority. Node adds such a file to the roots it comes with.
    posthornEnv: certificate === null ? {} : { NODE_EXTRA_CA_CERTS: certificate.file },
    processes,
    quick,
    onStop: (stop) => late.push('a stage', stop),
  }
}

/** Makes the template, and the view of all statements. */
async function prepare(postgres: EmbeddedPostgres): Promise<void> {
  await postgres.createDatabase(TEMPLATE)
  await migrate(postgres.databaseUrl(TEMPLATE))
  const client = new pg.Client({ connectionString: postgres.adminUrl })
  await client.connect()
  await client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
  await client.end()
}

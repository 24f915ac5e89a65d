import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { migrate } from '../../src/cli/migrate.ts'
import { createStack, type Stack } from '../../src/process/process-end.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { createCertificate } from '../helpers/receivers/receiver.ts'
import { installPosthorn } from '../helpers/runner/installation.ts'
import { createEngines, type Engines } from './engines/engine.ts'
import { startGenerator, type Generator } from './harness/generator.ts'
import { startReceiver, type Receiver } from './harness/receiver.ts'
import { cpuOfPostgres } from './measure/processes.ts'
import type { BenchOptions } from './scenario.ts'

/** What all scenarios of a run share. */
export type Rig = {
  folder: string
  postgres: EmbeddedPostgres
  /** Processor time in ms so far of PostgreSQL with all its backends. */
  postgresCpu(): number
  /** Returns the URL of a new one: empty, or a copy. */
  createDatabase(template?: string): Promise<string>
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
  /** What is pushed onto it stops with `close`, or at the latest before the rig itself. */
  openStack(): Pick<Stack, 'push'> & { close(): Promise<void> }
}

/** As in docker-compose.yml; everything else as PostgreSQL comes, so commits wait for the disk. */
const POSTGRES_SETTINGS = ['max_connections=300', 'shared_preload_libraries=pg_stat_statements']

/** A database with Posthorn's tables, which are empty. */
export const MIGRATED = 'posthorn_template'

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
  const postgresCpu = await cpuOfPostgres(postgres.adminUrl)
  const certificate = tls ? await createCertificate() : null
  if (certificate !== null)
    stack.push('the certificate', () => rm(dirname(certificate.file), { recursive: true }))
  const receiver = await startReceiver(certificate)
  stack.push('the receiver', () => receiver.stop())
  const generator = startGenerator()
  stack.push('the generator', () => generator.stop())
  const stages = createStack()
  stack.push('the stages', async () => {
    await stages.stop()
  })
  return {
    folder,
    postgres,
    postgresCpu,
    async createDatabase(template) {
      const name = `bench_${randomUUID().replaceAll('-', '')}`
      await postgres.createDatabase(name, template)
      return postgres.databaseUrl(name)
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
    openStack() {
      const stack = createStack()
      const close = async (): Promise<void> => {
        for (const problem of await stack.stop()) throw new Error(`could not stop ${problem}`)
      }
      stages.push('a stage', close)
      return { ...stack, close }
    },
  }
}

/** Makes the template, and the view of all statements. */
async function prepare(postgres: EmbeddedPostgres): Promise<void> {
  await postgres.createDatabase(MIGRATED)
  await migrate(postgres.databaseUrl(MIGRATED))
  const client = new pg.Client({ connectionString: postgres.adminUrl })
  await client.connect()
  await client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
  await client.end()
}

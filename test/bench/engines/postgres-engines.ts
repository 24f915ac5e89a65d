import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Connection } from '@temporalio/client'
import pg from 'pg'
import { startGuardedProcess, type GuardedProcess, runTool } from '../../../src/dev/guarded-process.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts'
import { freePort } from '../../../src/free-port.ts'
import { registerSearchAttributes } from '../../../src/temporal/namespace.ts'
import { cpuOfPostgres, cpuOfProcess } from '../measure/processes.ts'
import type { Engines, EngineSurroundings } from './engine.ts'
import { temporalConfig, type TemporalConfigOptions } from './temporal-config.ts'
import { provideTemporalPrograms, type TemporalPrograms } from './temporal-programs.ts'

const NAMESPACE = 'default'
const READY_TIMEOUT_MS = 120_000
const SCHEMA_TIMEOUT_MS = 120_000
/** A server that is killed leaves no work behind that anybody needs. */
const KILL_AFTER_MS = 3_000
const TEMPLATE = { main: 'temporal_template', visibility: 'temporal_visibility_template' }

type Databases = TemporalConfigOptions['databases']

/**
 * Temporal as in production, on a PostgreSQL of its own: then what Posthorn writes and what Temporal writes are told
 * apart. The first start makes namespace and search attributes; later ones get copies of its databases.
 */
export async function createPostgresEngines({ folder, shards, say }: EngineSurroundings): Promise<Engines> {
  const programs = await provideTemporalPrograms(say)
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'temporal-postgres'),
    logFile: join(folder, 'temporal-postgres.log'),
    flags: ['-c', 'max_connections=300'],
    print: say,
  })
  const postgresCpu = await cpuOfPostgres(postgres.adminUrl)
  // The server notes its address in its database: it has to be the same each time.
  const ports = await choosePorts()
  const address = `127.0.0.1:${ports.frontend.grpc}`
  const password = decodeURIComponent(new URL(postgres.adminUrl).password)
  let started = 0

  const startServer = async (databases: Databases): Promise<GuardedProcess> => {
    const file = join(folder, 'temporal.yaml')
    const config = { postgres: { port: postgres.port, password }, databases, shards, ports }
    writeFileSync(file, temporalConfig(config), { mode: 0o600 })
    return startGuardedProcess({
      name: 'The Temporal server',
      command: programs.server,
      args: ['--config-file', file, '--allow-no-auth', 'start'],
      stopSignal: 'SIGTERM',
      killAfterMs: KILL_AFTER_MS,
      logFile: join(folder, 'temporal.log'),
      isReady: () => prepareNamespace(address),
      readyTimeoutMs: READY_TIMEOUT_MS,
    })
  }

  say(`Making the databases of the Temporal server, ${shards} history shards …`)
  await createSchemas(programs, postgres, password)
  const first = await startServer(TEMPLATE)
  await first.stop()

  return {
    async start() {
      started += 1
      const databases = { main: `temporal_${started}`, visibility: `temporal_visibility_${started}` }
      await copyDatabase(postgres, TEMPLATE.main, databases.main)
      await copyDatabase(postgres, TEMPLATE.visibility, databases.visibility)
      const server = await startServer(databases)
      return {
        address,
        cpu: () => ({
          temporal: cpuOfProcess(server.pid),
          temporalPostgres: postgresCpu(),
        }),
        stop: () => server.stop(),
      }
    },
    stop: () => postgres.stop(),
  }
}

async function createSchemas(
  { sqlTool }: TemporalPrograms,
  postgres: EmbeddedPostgres,
  password: string,
): Promise<void> {
  const schemas = { main: 'postgresql/v12/temporal', visibility: 'postgresql/v12/visibility' }
  for (const name of ['main', 'visibility'] as const) {
    const at = ['--plugin', 'postgres12_pgx', '--ep', '127.0.0.1', '-p', String(postgres.port)]
    const run = (...args: string[]): Promise<string> =>
      runTool({
        command: sqlTool,
        args: [...at, '-u', 'postgres', '--db', TEMPLATE[name], ...args],
        // Not in the arguments, which every user of the machine can read.
        env: { ...process.env, SQL_PASSWORD: password },
        timeoutMs: SCHEMA_TIMEOUT_MS,
      })
    await run('create')
    await run('setup-schema', '-v', '0.0')
    await run('update-schema', '--schema-name', schemas[name])
  }
}

async function copyDatabase(postgres: EmbeddedPostgres, template: string, name: string): Promise<void> {
  await postgres.createDatabase(name, template)
  const client = new pg.Client({ connectionString: postgres.databaseUrl(name) })
  await client.connect()
  // The version of the tables is noted under the name of their database, and the server insists on it.
  await client.query('UPDATE schema_version SET db_name = $1', [name])
  await client.end()
}

/** True when the server knows the namespace and all search attributes, which it is told of until then. */
async function prepareNamespace(address: string): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: 1_000 })
  const { workflowService } = connection
  try {
    const { namespaces } = await workflowService.listNamespaces({})
    if (!namespaces.some(({ namespaceInfo }) => namespaceInfo?.name === NAMESPACE)) {
      const workflowExecutionRetentionPeriod = { seconds: 86_400 as never }
      await workflowService.registerNamespace({ namespace: NAMESPACE, workflowExecutionRetentionPeriod })
    }
    return (await registerSearchAttributes(connection, NAMESPACE)).length === 0
  } finally {
    await connection.close()
  }
}

/** The server keeps its ports in columns of two bytes with a sign, into which those of `freePort` fit. */
async function choosePorts(): Promise<TemporalConfigOptions['ports']> {
  const service = async () => ({ grpc: await freePort(), membership: await freePort() })
  return {
    frontend: await service(),
    history: await service(),
    matching: await service(),
    worker: await service(),
    http: await freePort(),
  }
}

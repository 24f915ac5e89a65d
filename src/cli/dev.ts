import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { ALL_SETTINGS, loadConfig } from '../config/load.ts'
import { defaultCacheDir } from '../dev/provision.ts'
import { rememberedPort, rememberPort, type DataFolderLock } from '../dev/data-folder.ts'
import { startDemoReceiver } from '../dev/demo-receiver.ts'
import {
  developmentEnvironment,
  otherMailServer,
  SHUTDOWN_GRACE,
  writeEnvironmentFile,
} from '../dev/development-environment.ts'
import { startEmbeddedPostgres } from '../dev/embedded-postgres.ts'
import { startMailbox } from '../dev/mailbox.ts'
import { mailboxPage } from '../dev/mailbox-page.ts'
import {
  provideTemporalCli,
  readTemporalCliVersion,
  type TemporalCli,
  startTemporalDevServer,
} from '../dev/temporal-dev-server.ts'
import { welcome, type ShownKey } from '../dev/welcome.ts'
import { ProblemError } from '../problem-error.ts'
import { assertPortFree } from '../free-port.ts'
import { checkWebhookUrl } from '../outbound/url-rules.ts'
import { createLogger } from '../observability/logger.ts'
import { loadCatalogue } from './catalogue.ts'
import { describeError, visibleText } from '../process/visible-text.ts'
import { migrate } from './migrate.ts'
import { onStopSignal, createStack } from '../process/process-end.ts'
import { seedFromFile, type NewKey, readSeedFile } from './seed.ts'
import { startService, type Service } from '../process/service.ts'
import { createShutdown, STOP_MARGIN_MS } from '../shutdown.ts'

const env = process.env
const stack = createStack()

const WAITING_MESSAGE_DELAY_MS = 5_000
const TEMPORAL_START_TIMEOUT_MS = 60_000

/** Of the servers that do not run yet, for a first check of the settings. */
const STAND_INS = {
  databaseUrl: 'postgres://127.0.0.1/posthorn',
  temporalAddress: env['TEMPORAL_ADDRESS'] || '127.0.0.1:7233',
  temporalUiUrl: null,
  mailbox: { port: 25 },
}

const shutdownGraceMs = readShutdownGrace()
const shutdown = createShutdown(shutdownGraceMs)

let stopping = false
const end = onStopSignal(async () => {
  print('Stopping …')
  await stop()
})

/** Where an instance keeps its data, and where it listens. */
type Instance = {
  dataDir: string
  ports: { api: number; temporal: number; ui: number }
  apiUrl: string
  lock: DataFolderLock
}

/** Starts PostgreSQL, Temporal with its UI, a demo organisation, API, worker and receiver on this machine. */
export async function startDevelopment(instance: Instance): Promise<void> {
  stack.push('the lock of the data folder', () => instance.lock.release())
  try {
    await start(instance)
  } catch (error) {
    // What it needed has ended.
    if (stopping) return
    print(describeError(error))
    await stop()
    process.exit(1)
  }
}

/** What does not end in time is ended by the guardians of its processes, as after a crash. */
async function stop(): Promise<void> {
  stopping = true
  shutdown.begin()
  for (const problem of await stack.stop(shutdownGraceMs + STOP_MARGIN_MS)) print(`Could not stop ${problem}`)
}

async function start({ dataDir, ports, apiUrl }: Instance): Promise<void> {
  // Before a server is built or started.
  const early = developmentEnvironment(env, { dataDir, apiUrl, ...STAND_INS })
  const catalogue = await loadCatalogue(loadConfig(early, ALL_SETTINGS).catalogueFile)
  await assertPortFree(ports.api, 'API', 'PORT')

  const postgres = await startEmbeddedPostgres({
    dataDir: join(dataDir, 'postgres'),
    logFile: join(dataDir, 'logs', 'postgres.log'),
    print,
  })
  stack.push('PostgreSQL', () => postgres.stop())
  endWith('PostgreSQL', postgres.exited)
  await postgres.createDatabase('posthorn')
  const databaseUrl = postgres.databaseUrl('posthorn')
  await migrate(databaseUrl)
  const shownKey = await seed(databaseUrl)

  const temporal = await startTemporal(dataDir, ports)
  const logFile = join(dataDir, 'logs', 'posthorn.log')
  // Started before the service and so stopped after it: attempts and mails in flight still reach them.
  const mailbox = await startMailbox({ folder: join(dataDir, 'mails'), print })
  stack.push('the mailbox', () => mailbox.stop())
  const receiver = await startDemoReceiver({ print, port: rememberedPort(dataDir) })
  stack.push('the demo receiver', () => receiver.stop())
  rememberPort(dataDir, Number(new URL(receiver.url).port))
  const { address: temporalAddress, uiUrl: temporalUiUrl, cli: temporalCli } = temporal
  const parts = { dataDir, databaseUrl, temporalAddress, temporalUiUrl, apiUrl, mailbox }
  const environment = developmentEnvironment(env, parts)
  const config = loadConfig(environment, ALL_SETTINGS)
  const { notifyAfterSeconds } = config
  const hints = { receiverUrl: receiver.url, notifyAfterSeconds, otherMailServer: otherMailServer(env) }
  const isReceiverAllowed = checkWebhookUrl(receiver.url, config).ok
  const service = await startService(
    config,
    { api: true, worker: true },
    {
      catalogue,
      logger: createLogger({ level: config.logLevel, file: logFile }),
      running: stack,
      shutdown,
      end,
      pages: [mailboxPage(() => mailbox.mails(), hints)],
    },
  )
  await temporalReady(service)

  const { metricsUrl } = service
  print(
    welcome({
      catalogue,
      operatorKey: config.operatorKeys[0]?.secret ?? null,
      apiUrl,
      metricsUrl,
      uiUrl: temporal.uiUrl,
      temporalAddress,
      temporalCli,
      databaseUrl,
      environmentFile: writeEnvironmentFile(dataDir, environment),
      logFile,
      isReceiverAllowed,
      ...shownKey,
      ...hints,
    }),
  )
  print(`Started in ${(performance.now() / 1000).toFixed(1)} s.`)
}

/** Stops everything, with a message, when one of the servers exits by itself. */
function endWith(name: string, exited: Promise<unknown>): void {
  void exited.then(async () => {
    if (stopping) return
    print(`${name} ended by itself: stopping. Its log is in the folder logs of the data folder.`)
    await stop()
    process.exit(1)
  })
}

/** Waits for Temporal to answer, with a message when that takes long, and gives up in the end. */
async function temporalReady(service: Service): Promise<void> {
  const deadline = Date.now() + TEMPORAL_START_TIMEOUT_MS
  const messageTimer = setTimeout(
    () => print('Waiting for the Temporal server to answer …'),
    WAITING_MESSAGE_DELAY_MS,
  )
  while (!(await service.temporal.isUp())) {
    if (Date.now() > deadline)
      throw new Error(
        `The Temporal server has not answered within ${TEMPORAL_START_TIMEOUT_MS / 1000} s. Its log is in the folder logs of the data folder.`,
      )
    await delay(100)
  }
  clearTimeout(messageTimer)
}

/** A server of our own, unless the environment names one that runs. */
async function startTemporal(
  dataDir: string,
  ports: Instance['ports'],
): Promise<{ address: string; uiUrl: string | null; cli: TemporalCli | null }> {
  const address = env['TEMPORAL_ADDRESS'] ?? ''
  if (address !== '') return { address, uiUrl: null, cli: null }
  const executable = await provideTemporalCli({ env, cacheDir: defaultCacheDir(env), print })
  const server = await startTemporalDevServer({
    executable,
    dbFile: join(dataDir, 'temporal.db'),
    port: ports.temporal,
    uiPort: ports.ui,
    logFile: join(dataDir, 'logs', 'temporal.log'),
    print,
  })
  stack.push('Temporal', () => server.stop())
  endWith('Temporal', server.exited)
  const version = await readTemporalCliVersion(executable, env)
  return { ...server, cli: { path: executable, version } }
}

/**
 * Writes the organisations of the seed file, of the demo one where no other is given. Returns the first key whose value
 * the file contains or this start has made, with what its member may do.
 */
async function seed(databaseUrl: string): Promise<ShownKey> {
  const ownSeed = env['POSTHORN_SEED'] || null
  const file = ownSeed ?? fileURLToPath(new URL('../dev/demo-seed.json', import.meta.url))
  const isDemo = ownSeed === null
  const { newKeys } = await seedFromFile(databaseUrl, file, { isDemo }).catch((error: unknown) => {
    if (!(error instanceof ProblemError) || error.problem.code !== 'organisation_erasing') throw error
    // Only a worker, which starts after this, ends the erasure.
    print(`Nothing is seeded: ${error.message}`)
    return { newKeys: [] as NewKey[] }
  })
  for (const { organisationId, memberId, name, key } of newKeys) {
    print(`New API key "${visibleText(name)}" of ${memberId} in ${organisationId}, shown only now: ${key}`)
  }
  const { organisations } = await readSeedFile(file, { isDemo })
  const keys = organisations.flatMap(({ id: organisationId, members = [] }) =>
    members.flatMap(({ id, apiKeys = [], fullAccess = false, permissions = [] }) =>
      apiKeys.map(({ name, key }) => {
        const isOfThisKey = (made: NewKey): boolean =>
          made.organisationId === organisationId && made.memberId === id && made.name === name
        const apiKey = key ?? newKeys.find(isOfThisKey)?.key ?? null
        return { organisationId, apiKey, grants: { fullAccess, permissions } }
      }),
    ),
  )
  const withoutKey = {
    organisationId: organisations[0]?.id ?? '',
    apiKey: null,
    grants: { fullAccess: true, permissions: [] },
  }
  return keys.find(({ apiKey }) => apiKey !== null) ?? keys[0] ?? withoutKey
}

function readShutdownGrace(): number {
  try {
    return loadConfig({ ...SHUTDOWN_GRACE, ...env }, ['shutdownGraceMs']).shutdownGraceMs
  } catch (error) {
    print(describeError(error))
    process.exit(1)
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

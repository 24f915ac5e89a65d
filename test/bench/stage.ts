import type { DataSource } from 'typeorm'
import { createDataSource } from '../../src/db/connection/data-source.ts'
import { startGuardedProcess } from '../../src/dev/guarded-process.ts'
import { freePort } from '../../src/free-port.ts'
import type { RunningEngine } from './engines/engine.ts'
import { loadOn, type Load } from './load.ts'
import { cpuOfProcess } from './measure/processes.ts'
import { createWebhook, seedOrganisation } from './organisation.ts'
import { MIGRATED, type Rig } from './rig.ts'
import { statesSettled, workflowsFollowed, type Mark } from './measure/states-settled.ts'
import type { FirstAttempt } from './scenario.ts'

/** Where a webhook's POSTs go (see Receiver), and the one event key it is subscribed to. */
export type WebhookPlan = { path: string; eventKey: string }

/** One that confirms. */
export const HOOK: WebhookPlan = { path: '/ok/hook', eventKey: 'customer:created' }

export type StageOptions = {
  webhooks: readonly WebhookPlan[]
  /** Further settings of Posthorn. */
  env?: Record<string, string>
  /** False for Posthorns that have delivered nothing yet. */
  isWarmedUp?: boolean
}

/** The organisation with its webhooks, and Posthorn, in one process or more, on a separate database and Temporal. */
export type Stage = Omit<Load, 'settled'> & {
  /** Of the first process. */
  apiUrl: string
  dataSource: DataSource
  databaseUrl: string
  engine: RunningEngine
  /** Of the Posthorn processes. */
  pids: readonly number[]
  /** Ids in the order of the plan. */
  webhookIds: string[]
  /**
   * Waits until every delivery is recorded as completed and, in `overflow`, has the workflow that follows it; with a
   * mark, every one that was made after it. Answers in words what is not.
   */
  settled(mark?: Mark): Promise<string[]>
  stopPosthorn(): Promise<void>
  close(): Promise<void>
}

/** Compiles what is hot and fills caches: a process that was just started would measure its start. */
const WARM_UP = { path: '/ok/warm-up', eventKey: 'call:created' }
/** Of each process: a few seconds. */
const WARM_UP_EVENTS: Record<FirstAttempt, number> = { workflow: 300, overflow: 4_000, direct: 4_000 }
const QUICK_WARM_UP_EVENTS = 30

/** Some scenarios fill tables with millions of rows. */
const FILLING_TIMEOUT_MS = 600_000

export async function openStage(rig: Rig, firstAttempt: FirstAttempt, options: StageOptions): Promise<Stage> {
  const { generator, receiver } = rig
  const stack = rig.openStack()
  const engine = await rig.engines.start()
  stack.push('Temporal', () => engine.stop())
  const databaseUrl = await rig.createDatabase(MIGRATED)
  const dataSource = createDataSource({
    url: databaseUrl,
    poolSize: 2,
    statementTimeoutMs: FILLING_TIMEOUT_MS,
  })
  await dataSource.initialize()
  stack.push('the database', () => dataSource.destroy())
  await seedOrganisation(databaseUrl, rig.folder)
  const posthorns: PosthornProcess[] = []
  // One after the other: all write to the log in which each is looked for.
  while (posthorns.length < rig.processes) {
    const posthorn = await startPosthorn({
      databaseUrl,
      temporalAddress: engine.address,
      bin: rig.posthornBin,
      logFile: rig.posthornLog,
      env: { FIRST_ATTEMPT: firstAttempt, ...rig.posthornEnv, ...options.env },
    })
    posthorns.push(posthorn)
    stack.push('Posthorn', () => posthorn.stop())
  }
  const apiUrls = posthorns.map(({ url }) => url)
  const apiUrl = apiUrls[0]!
  const ids: string[] = []
  for (const { path, eventKey } of [WARM_UP, ...options.webhooks])
    ids.push(await createWebhook(apiUrl, `${receiver.url}${path}`, eventKey))

  const load = loadOn(rig, apiUrls)
  const stage: Stage = {
    apiUrl,
    dataSource,
    databaseUrl,
    engine,
    pids: posthorns.map(({ pid }) => pid),
    webhookIds: ids.slice(1),
    ...load,
    async settled(mark) {
      const open = await statesSettled(dataSource, mark)
      return firstAttempt === 'overflow' ? [...open, ...(await workflowsFollowed(dataSource, mark))] : open
    },
    async takeArrivals() {
      return (await load.takeArrivals()).filter(({ path }) => path !== WARM_UP.path)
    },
    cpu: () => ({
      posthorn: posthorns.reduce((sum, { pid }) => sum + cpuOfProcess(pid), 0),
      postgres: rig.postgresCpu(),
      ...engine.cpu(),
      harness: cpuOfProcess(process.pid),
      generator: cpuOfProcess(generator.pid),
      receiver: cpuOfProcess(receiver.pid),
    }),
    async stopPosthorn() {
      await Promise.all(posthorns.map((posthorn) => posthorn.stop()))
    },
    close: () => stack.close(),
  }
  if (options.isWarmedUp !== false)
    await warmUp(stage, rig.processes * (rig.quick ? QUICK_WARM_UP_EVENTS : WARM_UP_EVENTS[firstAttempt]))
  return stage
}

async function warmUp(stage: Stage, events: number): Promise<void> {
  await stage.publish(WARM_UP.eventKey, { pace: { kind: 'closed', concurrency: 16 }, limit: { events } })
  await stage.arrived(WARM_UP.path, { deliveries: events })
  await stage.settled()
  await stage.takeArrivals()
}

type PosthornProcess = {
  url: string
  pid: number
  /** kill -9 after a moment: attempts that hang need not be waited for. */
  stop(): Promise<void>
}

const KEY_RING = `bench:${'ab'.repeat(32)}`
const READY_TIMEOUT_MS = 60_000
const KILL_AFTER_MS = 1_000

/**
 * `posthorn serve`, which is API and worker, with the settings of production but for receivers on this machine.
 * Its log goes straight to a file.
 */
async function startPosthorn(options: {
  /** File of the `posthorn` command. */
  bin: string
  databaseUrl: string
  temporalAddress: string
  logFile: string
  env: Record<string, string>
}): Promise<PosthornProcess> {
  const url = `http://127.0.0.1:${await freePort()}`
  const env = {
    PATH: process.env['PATH'],
    DATABASE_URL: options.databaseUrl,
    TEMPORAL_ADDRESS: options.temporalAddress,
    PORT: new URL(url).port,
    POSTHORN_ENCRYPTION_KEYS: KEY_RING,
    POSTHORN_ALLOW_HTTP: 'true',
    POSTHORN_ALLOWED_CIDRS: '127.0.0.0/8,::1/128',
    ...options.env,
  }
  const server = await startGuardedProcess({
    name: 'Posthorn',
    command: process.execPath,
    args: [options.bin, 'serve'],
    env,
    stopSignal: 'SIGTERM',
    killAfterMs: KILL_AFTER_MS,
    logFile: options.logFile,
    isReady: async (log) => log.includes('temporal.connected') && (await fetch(`${url}/readyz`)).ok,
    readyTimeoutMs: READY_TIMEOUT_MS,
  })
  return { url, pid: server.pid, stop: () => server.stop() }
}

import type { DataSource } from 'typeorm'
import { createDataSource } from '../../src/db/connection/data-source.ts'
import { createStack } from '../../src/process/shutdown-stack.ts'
import type { RunningEngine } from './engines/engine.ts'
import { loadOn, type Load } from './load.ts'
import { cpuOfProcess } from './measure/cpu.ts'
import { createWebhook, seedOrganisation } from './organisation.ts'
import { startPosthorn, type PosthornProcess } from './posthorn-process.ts'
import type { Rig } from './rig.ts'
import { statesSettled, workflowsFollowed, type Mark } from './measure/states-settled.ts'
import type { FirstAttempt } from './scenario.ts'

/** Where a webhook's POSTs go (see Receiver), and the one event key it is subscribed to. */
export type WebhookPlan = { path: string; eventKey: string }

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
  const stack = createStack()
  const close = async (): Promise<void> => {
    for (const problem of await stack.stop()) throw new Error(`could not stop ${problem}`)
  }
  rig.onStop(close)
  const engine = await rig.engines.start()
  stack.push('Temporal', () => engine.stop())
  const databaseName = await rig.createDatabase()
  const databaseUrl = rig.postgres.databaseUrl(databaseName)
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
    close,
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

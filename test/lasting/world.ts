import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { migrate } from '../../src/cli/migrate.ts'
import { seedFromFile } from '../../src/cli/seed.ts'
import { createStack } from '../../src/process/process-end.ts'
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { callApi } from '../helpers/api/api.ts'
import { startPosthorn, type PosthornProcess } from '../helpers/processes/posthorn.ts'
import { startWipeableTemporal, type WipeableTemporal } from '../helpers/temporal/wipeable-temporal.ts'
import { startEndpoints, type Ledger } from './ledger.ts'

export const API_KEY = 'phk_lasting_Wq7ZrT5n_in_clear_0001_kP3x'
export const PUBLISH_PATH = '/api/orgs/org_lasting/events'
/** Of the events for either endpoint. */
export const EVENT_KEYS = { confirmed: 'customer:created', refusedOnce: 'invoice:created' } as const

const PROCESSES = 2
const DATABASE = 'lasting'
const MAX_STARTS = 10
const RESTART_AFTER_MS = 1_000

/** Two `posthorn serve` with a PostgreSQL that waits for its disk, a Temporal, and two endpoints. */
export type World = {
  databaseUrl: string
  ledger: Ledger
  temporal: WipeableTemporal
  processes: PosthornProcess[]
  /** Stops PostgreSQL in good order, and starts it again. */
  restartPostgres(): Promise<void>
  /** kill -9, and a new process in its place, as a supervisor does. */
  killProcess(index: number): Promise<void>
  close(): Promise<void>
}

export async function createWorld(env: Record<string, string>): Promise<World> {
  const stack = createStack()
  const close = async (): Promise<void> => {
    const problems = await stack.stop()
    if (problems.length > 0) throw new Error(`could not stop ${problems.join(', ')}`)
  }
  try {
    return { ...(await build(env)), close }
  } catch (error) {
    await stack.stop()
    throw error
  }

  async function build(env: Record<string, string>): Promise<Omit<World, 'close'>> {
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-lasting-'))
    // PostgreSQL does not run as root: its user has to get in.
    chmodSync(folder, 0o755)
    stack.push('the folder', () => rm(folder, { recursive: true, force: true }))
    const startPostgres = (port?: number) =>
      startEmbeddedPostgres({
        dataDir: join(folder, 'postgres'),
        logFile: join(folder, 'postgres.log'),
        print: () => undefined,
        ...(port === undefined ? {} : { port }),
      })
    let postgres = await startPostgres()
    stack.push('PostgreSQL', () => postgres.stop())
    await postgres.createDatabase(DATABASE)
    const databaseUrl = postgres.databaseUrl(DATABASE)
    await migrate(databaseUrl)
    await seed(databaseUrl, folder)
    const temporal = await startWipeableTemporal()
    stack.push('Temporal', () => temporal.close())
    const endpoints = await startEndpoints()
    stack.push('the endpoints', () => endpoints.close())

    const taskQueue = `lasting-${randomUUID()}`
    const start = (): Promise<PosthornProcess> =>
      startPosthorn({
        databaseUrl,
        temporalAddress: temporal.address,
        taskQueue,
        // What it logs of hours would fill the disk; it may have to start while Temporal is away.
        env: { LOG_LEVEL: 'warn', RATE_LIMIT_PUBLISH: '100000', ...env },
        awaitEngine: false,
      })
    const processes: PosthornProcess[] = []
    for (let index = 0; index < PROCESSES; index++) {
      processes.push(await start())
      stack.push('Posthorn', async () => {
        await processes[index]!.stop()
      })
    }
    for (const [url, eventKey] of [
      [endpoints.url, EVENT_KEYS.confirmed],
      [endpoints.refusingUrl, EVENT_KEYS.refusedOnce],
    ] as const) {
      const made = await callApi(processes[0]!.url, 'POST', '/api/orgs/org_lasting/webhooks', {
        apiKey: API_KEY,
        body: { url, subscribedEventKeys: [eventKey], enabled: true },
      })
      if (made.status !== 201) throw new Error(made.text)
    }
    return {
      databaseUrl,
      ledger: endpoints.ledger,
      temporal,
      processes,
      async restartPostgres() {
        await postgres.stop()
        postgres = await startPostgres(postgres.port)
      },
      async killProcess(index) {
        await processes[index]!.kill()
        processes[index] = await supervise(start)
      },
    }
  }
}

/** As a supervisor: a process that ends at its start, because PostgreSQL is away, is started again. */
async function supervise(start: () => Promise<PosthornProcess>): Promise<PosthornProcess> {
  for (let tries = 1; ; tries++) {
    try {
      return await start()
    } catch (error) {
      if (tries === MAX_STARTS) throw error
    }
    await delay(RESTART_AFTER_MS)
  }
}

async function seed(databaseUrl: string, folder: string): Promise<void> {
  const member = {
    id: 'mem_lasting',
    name: 'Lea',
    email: 'lea@lasting.example',
    fullAccess: true,
    pushEnabled: false,
    apiKeys: [{ name: 'lasting', key: API_KEY }],
  }
  const organisation = {
    id: 'org_lasting',
    name: 'Lasting',
    email: 'info@lasting.example',
    supportEmail: null,
    timeZone: 'Europe/Brussels',
    members: [member],
  }
  const file = join(folder, 'seed.json')
  writeFileSync(file, JSON.stringify({ organisations: [organisation] }))
  await seedFromFile(databaseUrl, file)
}

import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { World } from './world.ts'

/** One thing that is done to a running installation: at an instant, or for a while. Times in shares of the run. */
export type Disturbance = {
  name: string
  from: number
  to: number
  disturb(world: World, ms: number): Promise<void>
}

/** The run is divided into so many parts; of two hours each has five minutes. */
const PARTS = 24
const READERS = 4
const READER_PAUSE_MS = 100
/** A reader goes over every attempt and every delivery, and keeps its snapshot from one query to the next. */
const ANALYSIS = `
  SELECT date_trunc('minute', d.created_at) AS minute, d.state, count(*), avg(a.duration_ms), max(a.duration_ms)
    FROM delivery d JOIN attempt a ON a.delivery_id = d.id GROUP BY 1, 2 ORDER BY 1, 2`
/** Snapshots of a reader last so long. */
const SNAPSHOT_MS = 30_000

const at = (part: number, name: string, disturb: (world: World) => Promise<void>): Disturbance => ({
  name,
  from: part / PARTS,
  to: part / PARTS,
  disturb,
})

/**
 * Load alone in the first four parts and the last five. Between them a process is killed in every part; a transaction
 * is left open for four parts, four readers analyse for four, and PostgreSQL and Temporal are restarted.
 */
export const DISTURBANCES: readonly Disturbance[] = [
  ...Array.from({ length: 15 }, (_, index) =>
    at(4.5 + index, 'process killed', (world) => world.killProcess(index % world.processes.length)),
  ),
  { name: 'open transaction', from: 6 / PARTS, to: 10 / PARTS, disturb: pinTransaction },
  { name: 'four readers', from: 11 / PARTS, to: 15 / PARTS, disturb: analyse },
  at(16, 'PostgreSQL restarted', (world) => world.restartPostgres()),
  at(17, 'Temporal restarted', async ({ temporal }) => {
    await temporal.stop()
    await temporal.start()
  }),
  at(18, 'PostgreSQL restarted', (world) => world.restartPostgres()),
]

/** Keeps dead rows from being removed: a transaction with an id and a snapshot that never ends. */
async function pinTransaction({ databaseUrl }: World, ms: number): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query('SELECT pg_current_xact_id(), count(*) FROM organisation')
    await delay(ms)
    await client.query('COMMIT')
  })
}

async function analyse({ databaseUrl }: World, ms: number): Promise<void> {
  const endsAt = performance.now() + ms
  await Promise.all(
    Array.from({ length: READERS }, () =>
      withClient(databaseUrl, async (client) => {
        while (performance.now() < endsAt) {
          const snapshotEndsAt = Math.min(endsAt, performance.now() + SNAPSHOT_MS)
          await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
          while (performance.now() < snapshotEndsAt) {
            await client.query(ANALYSIS)
            await delay(READER_PAUSE_MS)
          }
          await client.query('COMMIT')
        }
      }),
    ),
  )
}

async function withClient(url: string, use: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    await use(client)
  } finally {
    await client.end()
  }
}

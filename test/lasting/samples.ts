import pg from 'pg'
import { residentMib } from '../bench/measure/processes.ts'
import { percentile } from '../helpers/percentile.ts'
import type { World } from './world.ts'

/** What was seen in one interval; null where nothing came, or the database did not answer. */
export type Sample = {
  /** At its end, in ms since the start of the run. */
  at: number
  acceptedPerSecond: number
  confirmedPerSecond: number
  /** From publishing to the first POST, in ms, of what came to the endpoint that confirms at once. */
  p50: number | null
  p99: number | null
  max: number | null
  /** Deliveries that were accepted and not confirmed yet, at its end. */
  open: number
  /** Of the larger process. */
  memoryMib: number
  deadRows: number | null
  tablesMib: number | null
}

const BYTES_PER_MIB = 1_024 * 1_024
const SQL_TIMEOUT_MS = 2_000
const TABLES = `
  SELECT sum(n_dead_tup)::int AS "deadRows", sum(pg_total_relation_size(relid))::float8 AS bytes
    FROM pg_stat_user_tables WHERE relname IN ('event', 'delivery', 'attempt')`

/** Takes a sample of what has happened since the one before. */
export function createSampler(world: World): () => Promise<Sample> {
  const { ledger } = world
  const startedAt = performance.now()
  let last = { at: startedAt, accepted: 0, confirmed: 0 }
  return async () => {
    const { accepted, confirmed } = ledger
    const now = performance.now()
    const seconds = (now - last.at) / 1_000
    const delays = ledger.takeDelays()
    const sample = {
      at: now - startedAt,
      acceptedPerSecond: (accepted - last.accepted) / seconds,
      confirmedPerSecond: (confirmed - last.confirmed) / seconds,
      p50: shareOf(delays, 0.5),
      p99: shareOf(delays, 0.99),
      max: shareOf(delays, 1),
      open: accepted - confirmed,
      memoryMib: Math.max(...world.processes.map(({ pid }) => residentMib(pid))),
    }
    last = { at: now, accepted, confirmed }
    return { ...sample, ...(await tables(world.databaseUrl)) }
  }
}

const shareOf = (delays: readonly number[], share: number): number | null =>
  delays.length === 0 ? null : percentile(delays, share)

async function tables(url: string): Promise<Pick<Sample, 'deadRows' | 'tablesMib'>> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: SQL_TIMEOUT_MS,
    query_timeout: SQL_TIMEOUT_MS,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ deadRows: number; bytes: number }>(TABLES)
    return { deadRows: rows[0]!.deadRows, tablesMib: rows[0]!.bytes / BYTES_PER_MIB }
  } catch {
    return { deadRows: null, tablesMib: null }
  } finally {
    await client.end().catch(() => undefined)
  }
}

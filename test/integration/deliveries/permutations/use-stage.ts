import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { upsertOrganisation } from '../../../../src/db/queries/organisations.ts'
import { claimAttempts } from '../../../../src/deliveries/protocol/claim.ts'
import { useDatabase } from '../../../helpers/database/database.ts'
import { openSession, type SteppedSession, type Work } from './stepped-session.ts'
import { leftRows, READ, type Columns, type Did, type Left, type LeftDelivery } from './outcome.ts'
import type { Stage } from './permute.ts'
import { BEGAN_AT_MS, deliveryId, LEASE_MS, ORGANISATION, tablesOf, type Rows } from './rows.ts'

const MAX_SESSIONS = 3

/** Dead rows make scans slow. */
const RESETS_PER_VACUUM = 300

/**
 * Deadlocks are found soon, and rows are found, and so locked, as in large tables: by indexes. On a busy machine a
 * session may wait at a step for longer than the product lets it.
 */
const SETTINGS = [
  'deadlock_timeout=15ms',
  'idle_in_transaction_session_timeout=0',
  ...['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin'].map((plan) => `enable_${plan}=off`),
]

/** The planner takes tables for so large. VACUUM counts again. */
const ENLARGE = `UPDATE pg_class SET relpages = 1, reltuples = 100000
  WHERE oid = ANY (ARRAY['delivery', 'event', 'attempt']::regclass[])`

const TABLES = ['webhook', 'event', 'delivery', 'attempt', 'incident']

export type DatabaseStage = {
  /** For permutations that begin from these rows; with a session of each name. */
  of(rows: Rows, names: readonly string[]): Stage<Did>
  read(): Promise<Left>
  /** Tries to claim the next attempts of deliveries. */
  isAnyClaimable(deliveries: readonly LeftDelivery[]): Promise<boolean>
  /** Runs a session from its beginning to its end. */
  run(session: Work<Did>): Promise<Did>
}

/**
 * A database with a clock that stands still during a step, real sessions for the `describe` it is called in, and one more
 * that sees what they wait for.
 */
export function useStage(): DatabaseStage {
  const database = useDatabase()
  const sessions: SteppedSession<Did>[] = []
  let monitor: pg.Client
  let resets = 0
  let onChange: () => void = () => undefined

  before(async () => {
    monitor = new pg.Client({ connectionString: database.url })
    await monitor.connect()
    await monitor.query(PREPARE)
    await upsertOrganisation(database.dataSource, {
      id: ORGANISATION,
      name: 'Permutations',
      email: 'info@permutations.example',
      supportEmail: null,
      timeZone: 'UTC',
    })
    const url = new URL(database.url)
    url.searchParams.set('options', SETTINGS.map((setting) => `-c ${setting}`).join(' '))
    for (let index = 0; index < MAX_SESSIONS; index++)
      sessions.push(await openSession<Did>(url.href, () => onChange()))
  })
  after(async () => {
    for (const session of sessions) await session.close()
    await monitor.end()
  })

  return {
    of: (rows, names) => ({
      sessions: Object.fromEntries(names.map((name, index) => [name, sessions[index]!])),
      changed: () => new Promise((resolve) => (onChange = resolve)),
      async reset() {
        if (resets++ % RESETS_PER_VACUUM === 0) {
          await monitor.query(`VACUUM ${TABLES.join(', ')}, protocol_clock`)
          await monitor.query(ENLARGE)
        }
        await monitor.query(CLEAR)
        const tables = tablesOf(rows)
        const given = TABLES.map((table) => JSON.stringify(tables[table]))
        await monitor.query({ name: 'restore', text: RESTORE, values: given })
      },
      async tick() {
        await monitor.query(`UPDATE protocol_clock SET now = now + interval '1 ms'`)
      },
      async blockers(pids) {
        const { rows: found } = await monitor.query<{ pid: number; blockers: number[] }>(
          'SELECT pid, pg_blocking_pids(pid) AS blockers FROM unnest($1::int[]) AS pid',
          [pids],
        )
        return new Map(found.map(({ pid, blockers }) => [pid, blockers]))
      },
    }),
    async read() {
      const { rows } = await monitor.query<Columns>({ name: 'read', text: READ })
      return leftRows(rows[0]!)
    },
    async isAnyClaimable(deliveries) {
      const runs = deliveries.map(({ place, attempts }) => ({
        organisationId: ORGANISATION,
        deliveryId: deliveryId(Number(place)),
        number: attempts + 1,
        owner: randomUUID(),
        isWorkflow: false,
      }))
      const claims = await claimAttempts(database.dataSource, runs, LEASE_MS)
      return claims.some((claim) => claim !== null)
    },
    run: (session) => session(database.dataSource),
  }
}

const PREPARE = `
  ALTER TABLE delivery SET (autovacuum_enabled = false);
  ALTER TABLE event SET (autovacuum_enabled = false);
  ALTER TABLE attempt SET (autovacuum_enabled = false);
  CREATE TABLE protocol_clock (now timestamptz NOT NULL);
  INSERT INTO protocol_clock VALUES (now());
  CREATE OR REPLACE FUNCTION delivery_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT now FROM protocol_clock $$`

const CLEAR = [
  ...[...TABLES].reverse().map((table) => `DELETE FROM ${table}`),
  `UPDATE protocol_clock SET now = to_timestamp(${BEGAN_AT_MS} / 1000.0)`,
].join('; ')

const RESTORE = `WITH ${TABLES.map(
  (table, index) =>
    `r${index} AS (INSERT INTO ${table} SELECT * FROM jsonb_populate_recordset(NULL::${table}, $${index + 1}::jsonb))`,
).join(', ')} SELECT 1`

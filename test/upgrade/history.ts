import type { DataSource } from 'typeorm'

/** Of one statement. */
const CHUNK = 250_000

/** From one to the next: millions lie within some days, so that retention leaves them alone. */
const INTERVAL_MS = 100

/**
 * Events and their completed deliveries, straight into the database, the oldest first; attempts are left out. Without the
 * two indexes of these tables that a migration creates while they are in use.
 */
export async function writeHistory(
  dataSource: DataSource,
  { webhookId, organisationId, count }: { webhookId: string; organisationId: string; count: number },
): Promise<void> {
  if (count === 0) return
  await dataSource.query('DROP INDEX IF EXISTS event_trace_idx, delivery_test_idx')
  for (let newest = count; newest > 0; newest -= CHUNK)
    await dataSource.transaction(async (manager) => {
      // Without the checks of foreign keys, row by row.
      await manager.query('SET LOCAL session_replication_role = replica')
      await manager.query(INSERT, [organisationId, webhookId, newest, Math.max(1, newest - CHUNK + 1)])
    })
  await dataSource.query('VACUUM (ANALYZE) event, delivery')
}

const INSERT = `
  WITH events AS (
    INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id, created_at)
    SELECT uuidv7(-age), $1, 'customer:created', '{}', now() - age, md5(number::text), now() - age
      FROM (SELECT number, number * interval '${INTERVAL_MS} milliseconds' AS age
              FROM generate_series($3::int, $4::int, -1) AS number) past
    RETURNING id, created_at AS at
  )
  INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, created_at, started_at, completed_at)
  SELECT uuidv7(at - now()), id, $2::uuid, $1, 'completed', 1, at, at, at + interval '5 ms' FROM events`

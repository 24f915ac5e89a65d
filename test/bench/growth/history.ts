import type { DataSource } from 'typeorm'
import { serialiseEnvelope } from '../../../src/deliveries/publish/envelope.ts'
import { ORGANISATION } from '../organisation.ts'
import { wordsOf } from '../words.ts'

/** The rows `from` to `to` of a history; the higher the older. */
type History = { webhookId: string; url: string; from: number; to: number }

/** Of one statement: what it returns from one table to the next is held in memory. */
const CHUNK = 100_000
const NOTE_BYTES = 960

/**
 * Deliveries completed by their first attempt, five every second until now, straight into the database. Five million lie
 * within twelve days, so that retention leaves them alone; and as in the course of time, the oldest come first.
 */
export async function writeHistory(dataSource: DataSource, history: History): Promise<void> {
  const { webhookId, url, from, to } = history
  const body = serialiseEnvelope({
    event: 'customer:created',
    dataText: JSON.stringify({ id: 'cus_1', note: wordsOf(NOTE_BYTES) }),
    timestamp: Date.now(),
    traceId: 'trace-1',
    spanId: null,
    triggeredBy: null,
  })
  for (let newest = to; newest > from; newest -= CHUNK) {
    const oldest = Math.max(from, newest - CHUNK) + 1
    await dataSource.transaction(async (manager) => {
      // Without the checks of foreign keys, row by row, which take longer than writing the rows.
      await manager.query('SET LOCAL session_replication_role = replica')
      await manager.query(INSERT, [ORGANISATION.id, webhookId, url, body, newest, oldest])
    })
  }
  await tidy(dataSource)
}

const INSERT = `
  WITH events AS (
    INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id, created_at)
    SELECT uuidv7(-age), $1, 'customer:created', $4, now() - age, 'trace-1', now() - age
      FROM (SELECT place * interval '0.2 seconds' AS age FROM generate_series($5::int, $6::int, -1) AS place) past
    RETURNING id, created_at AS at
  ), deliveries AS (
    INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, created_at, workflow_started_at,
                          completed_at)
    SELECT uuidv7(at - now()), id, $2::uuid, $1, 'completed', 1, at, at, at + interval '5 ms' FROM events
    RETURNING id, created_at AS at
  )
  INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, outcome, status_code,
                       response_headers, response_body)
  SELECT id, $2::uuid, 1, 'schedule', $3, at, 2, 'succeeded', 200,
         '{"connection": "keep-alive", "content-length": "2", "keep-alive": "timeout=5"}', 'ok'
    FROM deliveries`

/** As autovacuum would have by and by; left to itself it might do so while something is measured. */
export async function tidy(dataSource: DataSource): Promise<void> {
  await dataSource.query('VACUUM (FREEZE, ANALYZE) event, delivery, attempt')
}

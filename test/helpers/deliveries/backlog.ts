import type { DataSource } from 'typeorm'
import { testEvent } from '../database/factories.ts'
import type { Backlog } from '../../../src/db/queries/backlog.ts'

/**
 * Writes deliveries of one webhook straight into the database, as a long outage would have left them: `failed` after
 * ten attempts, or `waiting` for the eighth, due in two hours. Returns their ids.
 */
export async function writeBacklog(
  dataSource: DataSource,
  backlog: {
    organisationId: string
    webhookId: string
    state: 'failed' | 'waiting'
    count: number
    eventKey?: string
  },
): Promise<string[]> {
  const { organisationId, webhookId, state, count, eventKey = 'customer:created' } = backlog
  const { body } = testEvent(organisationId, eventKey)
  const written = await dataSource.query<{ id: string }[]>(
    `WITH events AS (
       INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       SELECT uuidv7(), $1, $6, $3, now(), 'trace-1' FROM generate_series(1, $5) RETURNING id
     )
     INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, next_attempt_at, sweep_at,
                           workflow_started_at, completed_at)
     SELECT uuidv7(), id, $2, $1, $4,
            CASE WHEN $4 = 'failed' THEN 10 ELSE 7 END,
            CASE WHEN $4 = 'waiting' THEN now() + interval '2 hours' END,
            CASE WHEN $4 = 'waiting' THEN now() + interval '2 hours' END,
            now(),
            CASE WHEN $4 = 'failed' THEN now() END
       FROM events RETURNING id`,
    [organisationId, webhookId, body, state, count, eventKey],
  )
  return written.map(({ id }) => id)
}

/** What is counted in an empty database. */
export const EMPTY_BACKLOG: Backlog = {
  pending: 0,
  inProgress: 0,
  waiting: 0,
  failed: 0,
  oldestPendingAge: { busy: 0, idle: 0 },
  overdue: { busy: 0, idle: 0 },
  paused: 0,
  owedWorkflows: 0,
  oldestOwedAge: 0,
  openIncidents: 0,
}

/** Writes a failed attempt of each delivery straight into the database, answered with `statusCode`. */
export async function writeFailedAttempts(
  dataSource: DataSource,
  deliveryIds: readonly string[],
  attempt: { statusCode: number; number?: number; url?: string },
): Promise<void> {
  const { statusCode, number = 7, url = 'https://hooks.example.com/posthorn' } = attempt
  await dataSource.query(
    `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome, failure_code,
                          status_code, error, response_headers, response_body)
     SELECT id, $4, webhook_id, 'schedule', $3, now(), 211, 'failed', 'http_status', $2::integer,
            'The endpoint answered with HTTP ' || $2::integer || '.', '{"content-type": "text/plain"}', 'try later'
       FROM delivery WHERE id = ANY ($1::uuid[])`,
    [deliveryIds, statusCode, url, number],
  )
}

import type { DataSource } from 'typeorm'
import { testEvent } from '../database/factories.ts'

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

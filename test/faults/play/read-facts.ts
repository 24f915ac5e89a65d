import type { PlayDatabase } from './database.ts'
import type { Facts } from './record.ts'

/** Unix ms of a timestamptz column, with fractions. */
const ms = (column: string): string => `(extract(epoch FROM ${column}) * 1000)::float8`

/** Rows that the play itself dated back are none of its deliveries. */
const RECENT = `created_at > now() - interval '100 days'`

/** Reads all rows that the checks of a play are about, in one statement, so that they are of one instant. */
export async function readFacts(
  database: PlayDatabase,
  erasedOrganisationIds: readonly string[],
): Promise<Facts> {
  const list = (columns: string, from: string): string =>
    `(SELECT coalesce(json_agg(json_build_object(${columns})), '[]') FROM ${from})`
  const [found] = await database.query<{ facts: Facts }>(
    `SELECT json_build_object(
      'events', ${list(
        `'id', id, 'dataId', convert_from(body, 'UTF8')::json->'data'->>'id', 'body', convert_from(body, 'UTF8')`,
        `(SELECT * FROM event WHERE ${RECENT}) e`,
      )},
      'deliveries', ${list(
        `'id', id, 'eventId', event_id, 'webhookId', webhook_id, 'state', state, 'isTest', is_test,
         'stopReason', stop_reason, 'attempts', attempts, 'createdAt', ${ms('created_at')},
         'completedAt', ${ms('completed_at')}, 'nextAttemptAt', ${ms('next_attempt_at')}, 'row', to_json(d)::text`,
        `(SELECT * FROM delivery WHERE ${RECENT}) d`,
      )},
      'attempts', ${list(
        `'deliveryId', delivery_id, 'webhookId', webhook_id, 'number', number, 'trigger', trigger,
         'startedAt', ${ms('started_at')}, 'endedAt', ${ms('started_at')} + duration_ms,
         'recordedAt', ${ms('pg_xact_commit_timestamp(xmin)')}, 'outcome', outcome,
         'failureCode', failure_code, 'statusCode', status_code, 'responseBody', response_body`,
        '(SELECT xmin, * FROM attempt ORDER BY delivery_id, number) a',
      )},
      'incidents', ${list(
        `'id', id, 'webhookId', webhook_id, 'openedAt', ${ms('opened_at')}, 'closedAt', ${ms('closed_at')},
         'exhaustedAt', ${ms('exhausted_at')}`,
        '(SELECT * FROM incident ORDER BY opened_at) i',
      )},
      'notifications', ${list(
        `'id', id, 'incidentId', incident_id, 'kind', kind, 'channel', channel, 'recipient', recipient,
         'state', state, 'createdAt', ${ms('created_at')}, 'claimedAt', ${ms('claimed_at')}`,
        'notification',
      )},
      'retryJobs', ${list(`'id', id, 'state', state`, 'retry_job')},
      'halfErased', (SELECT coalesce(json_agg(id), '[]') FROM organisation WHERE id = ANY($1))) AS facts`,
    [erasedOrganisationIds],
  )
  return found!.facts
}

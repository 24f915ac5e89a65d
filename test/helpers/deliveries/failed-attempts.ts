import type { DataSource } from 'typeorm'

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

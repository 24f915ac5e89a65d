import type { TestWorkflowEnvironment } from '@temporalio/testing'
import type { DataSource } from 'typeorm'
import type { DatabaseClock } from '../../../src/db/connection/database-clock.ts'

/** The clock of a test database, by which claims are refused, which follows a Temporal server that skips time. */
export type DeliveryTime = DatabaseClock & {
  /** Sets the clock to Temporal's; it then runs on in real time, and is never set back. */
  follow: () => Promise<void>
}

/** A measured clock is exact to its round trip; the shortest of a few counts. */
const MEASUREMENTS = 3

const REPLACE_CLOCK = `
  CREATE TABLE IF NOT EXISTS skipped_delivery_time (ahead_ms float8 NOT NULL);
  INSERT INTO skipped_delivery_time SELECT 0 WHERE NOT EXISTS (SELECT FROM skipped_delivery_time);
  CREATE OR REPLACE FUNCTION delivery_now() RETURNS timestamptz LANGUAGE sql STABLE AS
  $$ SELECT date_trunc('milliseconds', statement_timestamp() + (SELECT ahead_ms FROM skipped_delivery_time) * interval '1 ms') $$`

/** Replaces the SQL function `delivery_now()` of a test database. May be called again. */
export async function skipDeliveryTime(
  dataSource: DataSource,
  environment: TestWorkflowEnvironment,
): Promise<DeliveryTime> {
  await dataSource.query(REPLACE_CLOCK)
  let aheadMs = 0
  return {
    nowMs: () => Date.now() + aheadMs,
    async follow() {
      const [rows] = await dataSource.query<[{ aheadMs: number }[], number]>(
        'UPDATE skipped_delivery_time SET ahead_ms = greatest(ahead_ms, $1) RETURNING ahead_ms AS "aheadMs"',
        [await measureAheadMs(environment)],
      )
      aheadMs = rows[0]!.aheadMs
    },
  }
}

/** Returns how far Temporal's clock is ahead of this machine's, rounded up by the round trip: what is due there is due here. */
async function measureAheadMs(environment: TestWorkflowEnvironment): Promise<number> {
  let best = { aheadMs: 0, roundTripMs: Infinity }
  for (let measured = 0; measured < MEASUREMENTS; measured++) {
    const beganAtMs = Date.now()
    const aheadMs = (await environment.currentTimeMs()) - beganAtMs
    const roundTripMs = Date.now() - beganAtMs
    if (roundTripMs < best.roundTripMs) best = { aheadMs, roundTripMs }
  }
  return best.aheadMs
}

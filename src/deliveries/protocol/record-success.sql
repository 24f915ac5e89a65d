-- Records attempts of one webhook that succeeded and completes their deliveries, whatever their state and owner. A
-- failure that another run recorded under the same number becomes this success. The caller holds the lock of the webhook
-- and closes its incident if nothing is left unresolved. Owed signals and workflows: see `record-first-success.sql`.
-- Planned once: see load-sql.ts.
WITH given AS (
  SELECT *
    FROM unnest((SELECT :ids::uuid[]), :organisationIds::text[], :numbers::int[], :triggers::text[], :urls::text[],
                :startedAts::timestamptz[], :durations::int[], :failureCodes::text[], :statusCodes::int[],
                :errors::text[], :headers::text[], :bodies::text[], :truncated::bool[])
      WITH ORDINALITY AS given (id, organisation_id, number, trigger, url, began_at, duration_ms, failure_code,
                                status_code, error, headers, body, truncated, place)
), done AS (
  UPDATE delivery d
     SET state = 'completed', completed_at = delivery_now(), attempts = greatest(d.attempts, g.number), runs = 0,
         owner = NULL, lease_until = NULL, stop_reason = NULL, next_attempt_at = NULL, retry_requested = false,
         attempt_requested = false, paused_since = NULL,
         sweep_at = CASE WHEN d.workflow_started_at IS NULL THEN delivery_now() + :followAfterMs::float8 * interval '1 ms'
                         WHEN d.state <> 'in_progress' THEN delivery_now() END
    FROM given g
   WHERE d.id = g.id AND d.organisation_id = g.organisation_id AND d.state <> 'completed'
  RETURNING g.*, d.is_erased, CASE WHEN d.is_test THEN NULL ELSE d.webhook_id END AS webhook_id
), inserted AS (
  INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, failure_code, status_code,
                       error, response_headers, response_body, response_truncated, outcome)
  SELECT id, webhook_id, number, trigger, url, began_at, duration_ms, failure_code, status_code,
         error, CASE WHEN NOT is_erased THEN headers::jsonb END, CASE WHEN NOT is_erased THEN body END,
         truncated AND NOT is_erased, 'succeeded'
    FROM done
  ON CONFLICT (delivery_id, number) DO UPDATE
     SET (trigger, url, started_at, duration_ms, failure_code, status_code, error, response_headers, response_body,
          response_truncated, outcome)
       = (excluded.trigger, excluded.url, excluded.started_at, excluded.duration_ms, excluded.failure_code,
          excluded.status_code, excluded.error, excluded.response_headers, excluded.response_body,
          excluded.response_truncated, excluded.outcome)
)
SELECT place::int AS place, webhook_id IS NOT NULL AS "isCounted" FROM done

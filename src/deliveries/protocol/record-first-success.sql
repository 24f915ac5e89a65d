-- Records first attempts that succeeded and completes their deliveries, for any owner: what a receiver confirmed
-- stays confirmed. Takes no lock of a webhook, since it changes no incident: a success that would close one, and one of a
-- delivery that has an attempt recorded, is left to `record-success.sql`.
-- A workflow that waits elsewhere is owed a signal. A delivery without a workflow is owed one where :followAfterMs is
-- given.
WITH given AS (
  SELECT *
    FROM unnest(:ids::uuid[], :organisationIds::text[], :numbers::int[], :triggers::text[], :urls::text[],
                :startedAts::timestamptz[], :durations::int[], :failureCodes::text[], :statusCodes::int[],
                :errors::text[], :headers::text[], :bodies::text[], :truncated::bool[])
      WITH ORDINALITY AS given (id, organisation_id, number, trigger, url, began_at, duration_ms, failure_code,
                                status_code, error, headers, body, truncated, place)
), done AS (
  UPDATE delivery d
     SET state = 'completed', completed_at = delivery_now(), attempts = 1, runs = 0, owner = NULL, lease_until = NULL,
         stop_reason = NULL, next_attempt_at = NULL, retry_requested = false, attempt_requested = false,
         paused_since = NULL,
         sweep_at = CASE WHEN d.workflow_started_at IS NULL THEN delivery_now() + :followAfterMs::float8 * interval '1 ms'
                         WHEN d.state <> 'in_progress' THEN delivery_now() END
    FROM given g
   WHERE d.id = g.id AND d.organisation_id = g.organisation_id AND d.attempts = 0 AND d.state <> 'completed'
     AND (d.is_test
          OR NOT EXISTS (SELECT 1 FROM incident i WHERE i.webhook_id = d.webhook_id AND i.closed_at IS NULL)
          OR has_unresolved(d.webhook_id))
  RETURNING g.*, d.is_erased, CASE WHEN d.is_test THEN NULL ELSE d.webhook_id END AS webhook_id
), inserted AS (
  INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, failure_code, status_code,
                       error, response_headers, response_body, response_truncated, outcome)
  SELECT id, webhook_id, number, trigger, url, began_at, duration_ms, failure_code, status_code,
         error, CASE WHEN NOT is_erased THEN headers::jsonb END, CASE WHEN NOT is_erased THEN body END,
         truncated AND NOT is_erased, 'succeeded'
    FROM done
)
SELECT place::int AS place FROM done

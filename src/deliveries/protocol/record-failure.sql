-- Records attempts of one webhook that failed, each only by the run that still owns the delivery: a failure belongs to
-- its owner. The caller holds the lock of the webhook. What follows goes by the webhook as it is now: a delivery that it
-- does not take any more, and a test event, is stopped; any other waits, or has failed permanently after its last
-- attempt unless a user has requested a retry meanwhile.
--
-- This is where the instant of the next attempt is computed, once: :dueInMs after the statement came, in whole
-- milliseconds rounded up, or at once for a requested retry.
-- An incident is opened, or woken, only by a failure that leaves its delivery waiting or failed. The caller closes it if
-- one whose payload is erased, and that had failed before, leaves nothing unresolved.
-- Planned once: see load-sql.ts.
WITH given AS (
  SELECT *
    FROM unnest((SELECT :ids::uuid[]), :organisationIds::text[], :numbers::int[], :triggers::text[], :urls::text[],
                :startedAts::timestamptz[], :durations::int[], :failureCodes::text[], :statusCodes::int[],
                :errors::text[], :headers::text[], :bodies::text[], :truncated::bool[], :owners::uuid[],
                :next::text[], :dueInMs::float8[])
      WITH ORDINALITY AS given (id, organisation_id, number, trigger, url, began_at, duration_ms, failure_code,
                                status_code, error, headers, body, truncated, owner, next, due_in_ms, place)
), failed AS (
  SELECT g.*,
         CASE WHEN d.is_test THEN 'test_failed'
              ELSE stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) END AS reason
    FROM given g
    JOIN delivery d ON d.id = g.id AND d.organisation_id = g.organisation_id
    JOIN event e ON e.id = d.event_id
    JOIN webhook w ON w.id = d.webhook_id
), done AS (
  UPDATE delivery d
     SET (state, next_attempt_at, sweep_at, completed_at) = (
           SELECT s.state,
                  CASE WHEN s.state = 'waiting' THEN s.due END,
                  CASE WHEN s.state = 'waiting'
                       THEN s.due + CASE WHEN d.workflow_started_at IS NULL THEN :startSweepDelayMs::float8
                                         WHEN f.failure_code = ANY (:timeoutCodes::text[])
                                         THEN :timeoutSweepDelayMs::float8
                                         ELSE :sweepDelayMs::float8 END * interval '1 ms'
                       WHEN d.workflow_started_at IS NULL THEN delivery_now() + :followAfterMs::float8 * interval '1 ms' END,
                  CASE WHEN s.state <> 'waiting' THEN delivery_now() END
             FROM (SELECT CASE WHEN f.reason IS NOT NULL THEN 'stopped'
                               WHEN d.retry_requested THEN 'waiting'
                               ELSE f.next END AS state,
                          CASE WHEN d.retry_requested THEN delivery_now()
                               ELSE delivery_now() + ceil(f.due_in_ms + 1) * interval '1 ms' END AS due) s),
         stop_reason = f.reason,
         retry_requested = d.retry_requested AND f.reason IS NULL,
         attempt_requested = false, attempts = f.number, runs = 0, owner = NULL, lease_until = NULL, paused_since = NULL
    FROM failed f
   WHERE d.id = f.id AND d.attempts = f.number - 1 AND d.state = 'in_progress' AND d.owner = f.owner
  RETURNING f.*, CASE WHEN d.is_test THEN NULL ELSE d.webhook_id END AS webhook_id, d.state, d.next_attempt_at, d.is_erased
), inserted AS (
  INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, failure_code, status_code,
                       error, response_headers, response_body, response_truncated, outcome)
  SELECT id, webhook_id, number, trigger, url, began_at, duration_ms, failure_code, status_code,
         error, CASE WHEN NOT is_erased THEN headers::jsonb END, CASE WHEN NOT is_erased THEN body END,
         truncated AND NOT is_erased, 'failed'
    FROM done
)
SELECT done.place::int AS place, done.state, done.next_attempt_at AS "dueAt",
       (extract(epoch FROM done.next_attempt_at - delivery_now()) * 1000)::float8 AS "dueInMs",
       done.reason IS NULL AND (i.id IS NULL OR i.resting OR done.state = 'failed' AND i.exhausted_at IS NULL)
         AS "changesIncident",
       done.number > 1 AND done.reason IS NOT DISTINCT FROM 'payload_erased' AS "isErased"
  FROM done
  LEFT JOIN incident i ON i.webhook_id = done.webhook_id AND i.closed_at IS NULL

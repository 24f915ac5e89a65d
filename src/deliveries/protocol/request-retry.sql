-- Records on the rows that a user requests the next attempt at once, for deliveries of one webhook that is live, in one
-- of the given states: what waits is due now, what has ended waits for one more attempt that is due now, and an attempt
-- in progress is followed by another if it fails. The signal that follows only wakes the workflow up.
-- The caller holds the lock of the webhook. Passes over completed deliveries, test events, deliveries that their webhook
-- does not take or whose payload is erased, and those that were stopped before any attempt: they resume by themselves.
UPDATE delivery d
   SET retry_requested = true,
       stop_reason = NULL,
       completed_at = NULL,
       paused_since = NULL,
       (state, runs, next_attempt_at, sweep_at) = (
         SELECT CASE WHEN is_at_rest THEN 'waiting' ELSE d.state END,
                CASE WHEN is_at_rest THEN 0 ELSE d.runs END,
                CASE WHEN is_at_rest THEN delivery_now() ELSE d.next_attempt_at END,
                -- The sweeper signals for a process that dies before it did.
                CASE WHEN is_at_rest THEN delivery_now() + interval '5 seconds' ELSE d.sweep_at END
           FROM (SELECT d.state IN ('waiting', 'failed', 'stopped') AS is_at_rest) at_rest)
  FROM webhook w, event e
 WHERE d.id = ANY(:ids::uuid[]) AND d.organisation_id = :organisationId AND d.webhook_id = :webhookId
   AND NOT d.is_test AND d.state = ANY(:states::text[]) AND d.state <> 'completed'
   AND (d.state <> 'stopped' OR d.attempts > 0)
   AND w.id = d.webhook_id AND e.id = d.event_id
   AND stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) IS NULL
RETURNING d.id AS "deliveryId", d.attempts, e.key AS "eventKey", w.url, d.state

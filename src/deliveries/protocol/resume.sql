-- Resumes the deliveries of a webhook that were stopped before any attempt and that it, as it is now, takes: they were
-- accepted, and only held up. The caller holds the lock of the webhook, and has just switched it on or widened its
-- subscription. A workflow that they had may have ended: they are started anew. One whose run was lost may have been
-- POSTed: it is in progress, with its lease over.
WITH resumed AS (
  UPDATE delivery d
     SET state = CASE WHEN d.runs = 0 THEN 'pending' ELSE 'in_progress' END,
         owner = CASE WHEN d.runs > 0 THEN gen_random_uuid() END,
         lease_until = CASE WHEN d.runs > 0 THEN delivery_now() - interval '1 ms' END,
         stop_reason = NULL, completed_at = NULL, workflow_started_at = NULL, sweep_at = delivery_now()
    FROM webhook w, event e
   WHERE d.organisation_id = :organisationId AND d.webhook_id = :webhookId
     AND d.state = 'stopped' AND NOT d.is_test AND d.attempts = 0
     AND d.stop_reason IN ('webhook_disabled', 'unsubscribed')
     AND w.id = d.webhook_id AND e.id = d.event_id
     AND stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) IS NULL
  RETURNING 1
)
SELECT count(*)::int AS count FROM resumed

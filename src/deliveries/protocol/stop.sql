-- Stops the deliveries of a webhook that it, as it is now, does not take: it is switched off, deleted, or no longer
-- subscribed to their keys, or their payload is erased. An attempt under way finishes first, and its record goes by the
-- webhook; one whose run was lost is stopped here, and keeps its count of runs. The caller holds the lock of the
-- webhook, and closes its incident if erasures alone leave nothing unresolved. With :eventId only those of this event,
-- without reading the others.
-- A workflow that waits is owed a signal; a delivery that was attempted without a workflow is owed one that follows.
--
-- MATERIALIZED, since PostgreSQL rechecks a row that another transaction had locked against the row that it was joined
-- with. It does not remember which row of an inlined UNION that was, reads the UNION again, and may miss it.
-- In the order of ids, so that a switch-off and another statement over many rows never deadlock.
WITH unwanted AS MATERIALIZED (
  SELECT d.id, stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) AS reason
    FROM (SELECT id, event_id, webhook_id, is_erased FROM delivery
           WHERE organisation_id = :organisationId AND webhook_id = :webhookId
             AND completed_at IS NULL AND workflow_started_at IS NULL AND :eventId::uuid IS NULL
          UNION ALL
          SELECT id, event_id, webhook_id, is_erased FROM delivery
           WHERE organisation_id = :organisationId AND webhook_id = :webhookId
             AND completed_at IS NULL AND workflow_started_at IS NOT NULL AND :eventId::uuid IS NULL
          UNION ALL
          SELECT id, event_id, webhook_id, is_erased FROM delivery
           WHERE organisation_id = :organisationId AND webhook_id = :webhookId
             AND completed_at IS NULL AND event_id = :eventId) d
    JOIN event e ON e.id = d.event_id
    JOIN webhook w ON w.id = d.webhook_id
   WHERE stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) IS NOT NULL
   ORDER BY d.id
), stopped AS (
  UPDATE delivery d
     SET state = 'stopped', stop_reason = unwanted.reason, completed_at = delivery_now(), next_attempt_at = NULL,
         retry_requested = false, attempt_requested = false, owner = NULL, lease_until = NULL, paused_since = NULL,
         sweep_at = CASE WHEN d.workflow_started_at IS NOT NULL OR d.attempts > 0 THEN delivery_now() END
    FROM unwanted
   WHERE d.id = unwanted.id
     AND (d.state IN ('pending', 'waiting') OR d.state = 'in_progress' AND d.lease_until < delivery_now())
  RETURNING d.stop_reason, d.attempts
)
SELECT count(*)::int AS count,
       coalesce(bool_and(stop_reason = 'payload_erased') FILTER (WHERE attempts > 0), false) AS "areErased"
  FROM stopped

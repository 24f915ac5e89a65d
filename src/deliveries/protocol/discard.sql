-- Stops deliveries of one webhook for good at a user's request, those that wait or have failed. The caller holds the lock
-- of the webhook. A workflow that waits is owed a signal; that of a failed delivery has ended.
UPDATE delivery d
   SET sweep_at = CASE WHEN d.state = 'waiting' THEN delivery_now() END,
       state = 'stopped', stop_reason = 'discarded', completed_at = delivery_now(), next_attempt_at = NULL,
       retry_requested = false, paused_since = NULL
 WHERE d.organisation_id = :organisationId AND d.webhook_id = :webhookId AND d.id = ANY(:ids::uuid[])
   AND d.state IN ('waiting', 'failed')
RETURNING d.id

-- Makes a further delivery of each event, pending and due at once, where the webhook, as it is now, takes it. The caller
-- holds the lock of the webhook. An event that is purged or erased meanwhile is left out: an erasure waits for the lock on
-- it, and marks this delivery too. Events are locked in the order of ids, as purges do, and sent in that of the stream.
WITH taken AS MATERIALIZED (
  SELECT e.id AS event_id, w.id AS webhook_id, e.organisation_id, e.sequence
    FROM event e
    JOIN webhook w ON w.id = :webhookId AND w.organisation_id = e.organisation_id
   WHERE e.organisation_id = :organisationId AND e.id = ANY (:eventIds::uuid[]) AND NOT e.is_test
     AND stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, e.body IS NULL) IS NULL
   ORDER BY e.id
     FOR SHARE OF e
)
INSERT INTO delivery (id, event_id, webhook_id, organisation_id, is_test, state, runs, sweep_at, created_at)
SELECT uuidv7(), event_id, webhook_id, organisation_id, false, 'pending', 0, delivery_now(), delivery_now()
  FROM (SELECT * FROM taken ORDER BY sequence) replayed
RETURNING id AS "deliveryId"

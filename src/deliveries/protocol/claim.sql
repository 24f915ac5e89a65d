-- Takes deliveries for attempts, each by a run of its own, by compare-and-set: the delivery has `number` - 1 recorded
-- attempts, it is pending, or due, or the lease of the run that has it is over, its webhook takes it, and its payload is
-- not erased.
-- Nothing is claimed before its time, on any path. The tolerance is the precision to which processes know the
-- offset of their clocks. A run is counted before its POST: after five that were lost the attempt has failed.
-- `ageMs` counts from the last change of the webhook at the earliest, since it may have been switched off until then.
-- Passes over locked rows: a switch-off or discard of a long backlog has them for up to a minute, and a claim that waited
-- would keep a connection, and the other webhooks of its batch. The caller claims them again.
-- Planned once: see load-sql.ts.
WITH free AS (
  SELECT d.id, g.owner, g.is_workflow, g.place
    FROM unnest((SELECT :ids::uuid[]), :organisationIds::text[], :numbers::int[], :owners::uuid[], :areWorkflows::bool[])
           WITH ORDINALITY AS g (id, organisation_id, number, owner, is_workflow, place)
    JOIN delivery d ON d.id = g.id AND d.organisation_id = g.organisation_id AND d.attempts = g.number - 1
   WHERE (d.state = 'pending'
          OR d.state = 'waiting' AND d.next_attempt_at <= delivery_now() + interval '3 ms'
          OR d.state = 'in_progress' AND d.lease_until < delivery_now())
     FOR NO KEY UPDATE OF d SKIP LOCKED
)
UPDATE delivery d
   SET state = 'in_progress',
       runs = d.runs + 1,
       owner = g.owner,
       lease_until = delivery_now() + :leaseMs * interval '1 ms',
       -- Temporal replaces a lost worker of a workflow; without a workflow the sweeper does.
       sweep_at = delivery_now() + :leaseMs * interval '1 ms'
         + CASE WHEN g.is_workflow OR d.workflow_started_at IS NOT NULL THEN :sweepDelayMs ELSE 0 END * interval '1 ms',
       -- A retry that was requested before the first attempt is that attempt.
       attempt_requested = d.state <> 'pending' AND (d.retry_requested OR d.attempt_requested),
       retry_requested = false,
       paused_since = NULL,
       workflow_started_at = CASE WHEN g.is_workflow THEN coalesce(d.workflow_started_at, delivery_now())
                                  ELSE d.workflow_started_at END
  FROM free g, webhook w, event e
 WHERE d.id = g.id AND w.id = d.webhook_id AND e.id = d.event_id
   AND stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) IS NULL
RETURNING g.place::int AS place, d.owner, d.runs, d.attempt_requested AS "isRequested", d.webhook_id AS "webhookId",
          e.key AS "eventKey", e.trace_id AS "traceId", w.url, w.secret, e.body,
          (extract(epoch FROM delivery_now() - greatest(d.created_at, w.updated_at)) * 1000)::float8 AS "ageMs"

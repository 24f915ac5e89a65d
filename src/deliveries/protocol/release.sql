-- Returns deliveries whose run ends without an outcome. A run that sent nothing is not counted, and the delivery is again
-- what it was; if its POST was cut off (`has_posted`), or an earlier run was lost, a POST may have been sent: it stays in
-- progress, with its lease over, and any run may claim it. Does nothing where the run does not own the row any more.
UPDATE delivery d
   SET (state, runs, owner, lease_until) = (
         SELECT CASE WHEN left_over > 0 THEN 'in_progress' WHEN d.attempts = 0 THEN 'pending' ELSE 'waiting' END,
                left_over,
                CASE WHEN left_over > 0 THEN d.owner END,
                CASE WHEN left_over > 0 THEN delivery_now() - interval '1 ms' END
           FROM (SELECT d.runs - CASE WHEN g.has_posted THEN 0 ELSE 1 END AS left_over) counted),
       retry_requested = d.retry_requested
         OR d.attempt_requested AND NOT g.has_posted AND d.runs = 1,
       attempt_requested = d.attempt_requested AND (g.has_posted OR d.runs > 1),
       -- The workflow makes the attempt again by itself.
       sweep_at = delivery_now()
         + CASE WHEN d.workflow_started_at IS NULL THEN 0 ELSE :sweepDelayMs END * interval '1 ms'
  FROM unnest(:ids::uuid[], :owners::uuid[], :havePosted::bool[]) AS g (id, owner, has_posted)
 WHERE d.id = g.id AND d.state = 'in_progress' AND d.owner = g.owner
RETURNING d.id

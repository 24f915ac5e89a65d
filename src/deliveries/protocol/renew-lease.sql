-- Renews the leases of runs whose outcome is being recorded, so that no other run posts meanwhile. Passes over locked
-- rows: the transaction that has the lock is about to record the outcome.
WITH mine AS (
  SELECT d.id
    FROM unnest(:ids::uuid[], :owners::uuid[]) AS g (id, owner)
    JOIN delivery d ON d.id = g.id AND d.owner = g.owner
   WHERE d.state = 'in_progress'
     FOR NO KEY UPDATE OF d SKIP LOCKED
)
UPDATE delivery d
   SET lease_until = delivery_now() + :leaseMs * interval '1 ms',
       sweep_at = delivery_now() + :leaseMs * interval '1 ms'
         + CASE WHEN d.workflow_started_at IS NULL THEN 0 ELSE :sweepDelayMs END * interval '1 ms'
  FROM mine
 WHERE d.id = mine.id
RETURNING d.id

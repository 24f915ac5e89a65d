-- Notes that the workflows of deliveries were started. From now on they make the attempts, and the sweeper checks on what
-- is late. A delivery that has ended meanwhile owes its workflow what it owed: a signal.
UPDATE delivery d
   SET workflow_started_at = delivery_now(),
       sweep_at = CASE d.state WHEN 'pending' THEN delivery_now() + :sweepDelayMs * interval '1 ms'
                               WHEN 'waiting' THEN greatest(d.next_attempt_at, delivery_now())
                                                   + :sweepDelayMs * interval '1 ms'
                               ELSE d.sweep_at END
 WHERE d.id = ANY(:ids::uuid[]) AND d.workflow_started_at IS NULL
RETURNING d.id

-- Makes every delivery due for the sweeper that had a workflow and is late: Temporal's data is gone, and all workflows
-- with it. Webhook by webhook in turn, over a few seconds. Locks rows in the order of ids, as a switch-off does.
UPDATE delivery d
   SET sweep_at = delivery_now() + least(late.place, 5000) * interval '1 ms'
  FROM (SELECT id, row_number() OVER (PARTITION BY webhook_id ORDER BY sweep_at) AS place
          FROM delivery
         WHERE completed_at IS NULL AND workflow_started_at IS NOT NULL
           AND coalesce(next_attempt_at, workflow_started_at) < delivery_now()
         ORDER BY id) late
 WHERE d.id = late.id AND d.completed_at IS NULL AND d.sweep_at > delivery_now()
RETURNING d.id

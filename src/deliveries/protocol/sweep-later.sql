-- Sets when the sweeper reads rows again, by compare-and-set: a row that went on since it was read is left alone, and
-- of two processes that read the same rows only one takes them. Without `in_ms` a final row is settled: its workflow was
-- told, or started. Passes over locked rows: they are just going on.
-- Compares whole milliseconds, as the caller has them: an older version, or an operator, may have written microseconds.
WITH mine AS (
  SELECT d.id, g.in_ms, g.paused_since
    FROM unnest(:ids::uuid[], :seenAts::timestamptz[], :inMs::float8[], :pausedSince::timestamptz[])
           AS g (id, seen_at, in_ms, paused_since)
    JOIN delivery d ON d.id = g.id AND date_trunc('milliseconds', d.sweep_at) = g.seen_at
     AND (g.in_ms IS NOT NULL OR d.completed_at IS NOT NULL)
     FOR NO KEY UPDATE OF d SKIP LOCKED
)
UPDATE delivery d
   SET sweep_at = delivery_now() + mine.in_ms * interval '1 ms',
       paused_since = mine.paused_since
  FROM mine
 WHERE d.id = mine.id
RETURNING d.id, d.sweep_at AS "sweepAt"

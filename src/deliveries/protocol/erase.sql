-- Marks all deliveries of an event whose payload this transaction has erased: from now on none is claimed or retried, and
-- what endpoints answer is not recorded, also by runs that are under way. `stop.sql` stops those that are open.
-- In the order of ids, as a switch-off is. Waits for records that are just being written, so that the caller finds their
-- answers.
WITH marked AS MATERIALIZED (
  SELECT id FROM delivery WHERE organisation_id = :organisationId AND event_id = :eventId
   ORDER BY id
     FOR NO KEY UPDATE
)
UPDATE delivery d
   SET is_erased = true
  FROM marked
 WHERE d.id = marked.id

-- Commits events, each with a delivery for every webhook of its organisation that takes it, or for the one webhook that
-- it is addressed to (a test event).
--
-- The commit is the claim of what begins at once: of each webhook as many deliveries as the process has reserved slots
-- for (`room`), and of all together no more than `roomInAll`, those first that were given first, are written as in
-- progress, by a run of their own that counts as the first. The rest is pending: a POST never begins before its row is in
-- progress. One statement, so that an event is never without its deliveries.
WITH given AS (
  SELECT id, organisation_id, webhook_id, key, emitted_at, trace_id, place,
         substring(:bodies::bytea FROM start FOR length) AS body
    FROM unnest(:ids::uuid[], :organisationIds::text[], :webhookIds::uuid[], :keys::text[], :emittedAts::timestamptz[],
                :traceIds::text[], :starts::int[], :lengths::int[])
      WITH ORDINALITY AS given (id, organisation_id, webhook_id, key, emitted_at, trace_id, start, length, place)
), taking AS MATERIALIZED (
  -- Once for all events with one key: an organisation may have a thousand webhooks, and a commit a hundred events.
  SELECT organisation_id, key, addressee, w.id AS webhook_id, w.url, w.secret
    FROM (SELECT DISTINCT organisation_id, key, webhook_id AS addressee FROM given) audience
    JOIN webhook w USING (organisation_id)
   WHERE w.deleted_at IS NULL
     AND (addressee IS NULL OR addressee = w.id)
     AND stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, key) IS NULL
), matching AS (
  SELECT g.id AS event_id, g.organisation_id, addressee, g.key, g.place, t.webhook_id, url, secret,
         row_number() OVER (PARTITION BY t.webhook_id ORDER BY g.place) <= coalesce(reserved.room, :defaultRoom::int)
           AS fits
    FROM given g
    JOIN taking t ON t.organisation_id = g.organisation_id AND t.key = g.key AND addressee IS NOT DISTINCT FROM g.webhook_id
    LEFT JOIN unnest(:roomIds::uuid[], :rooms::int[]) AS reserved (webhook_id, room)
           ON reserved.webhook_id = t.webhook_id
), chosen AS (
  SELECT *, fits AND row_number() OVER (PARTITION BY fits ORDER BY place) <= :roomInAll::int AS begins FROM matching
), new_delivery AS MATERIALIZED (
  -- Before the rows are written: the answer needs no join with them, which would grow with the square of their number.
  SELECT *, uuidv7() AS id, CASE WHEN begins THEN gen_random_uuid() END AS owner,
         delivery_now() + CASE WHEN begins THEN :leaseMs::float8 ELSE :sweepAfterMs::float8 END * interval '1 ms' AS sweep_at
    FROM chosen
), insert_events AS (
  INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id, is_test)
  SELECT id, organisation_id, key, body, emitted_at, trace_id, webhook_id IS NOT NULL
    FROM given
   -- A test event whose webhook takes none is not written.
   WHERE webhook_id IS NULL OR id IN (SELECT event_id FROM new_delivery)
), insert_deliveries AS (
  INSERT INTO delivery (id, event_id, webhook_id, organisation_id, is_test, state, runs, owner, lease_until, sweep_at,
                        created_at)
  SELECT id, event_id, webhook_id, organisation_id, addressee IS NOT NULL,
         CASE WHEN begins THEN 'in_progress' ELSE 'pending' END,
         CASE WHEN begins THEN 1 ELSE 0 END,
         owner,
         CASE WHEN begins THEN delivery_now() + :leaseMs * interval '1 ms' END,
         sweep_at,
         delivery_now()
    FROM new_delivery
)
SELECT id AS "deliveryId", event_id AS "eventId", webhook_id AS "webhookId", organisation_id AS "organisationId",
       key AS "eventKey", url, secret, owner, sweep_at AS "sweepAt"
  FROM new_delivery
 ORDER BY id

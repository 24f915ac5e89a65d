-- The outbox of `posthorn relay`, for your platform's own PostgreSQL 15 to 18. Running it again is harmless.
-- Your transactions INSERT. The relay, which may be another role, needs SELECT, UPDATE and DELETE.

CREATE TABLE IF NOT EXISTS posthorn_outbox (
  -- The order in which the events of an organisation are published.
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,

  -- What you insert: organisation, event key and `data` as JSON text, which is published token by token as it is.
  organisation_id text NOT NULL CHECK (organisation_id ~ '^[A-Za-z0-9_-]{1,64}$'),
  event text NOT NULL,
  data text NOT NULL,
  -- Optional, as in the body of the API: trace, span, and {"id", "name"} of the user who performed the action.
  trace_id text,
  span_id text,
  triggered_by jsonb,
  -- Becomes the `timestamp` of the event.
  created_at timestamptz NOT NULL DEFAULT now(),

  -- What the relay records: failed tries, the last problem, and no try before `retry_at`.
  attempts integer NOT NULL DEFAULT 0,
  error text,
  retry_at timestamptz,
  -- Refused for good. Once its cause is gone: UPDATE posthorn_outbox SET parked_at = NULL WHERE id = …
  parked_at timestamptz,
  -- Set where published rows are kept (RELAY_KEEP_HOURS).
  published_at timestamptz
);

CREATE INDEX IF NOT EXISTS posthorn_outbox_waiting ON posthorn_outbox (organisation_id, id)
  WHERE published_at IS NULL AND parked_at IS NULL;
CREATE INDEX IF NOT EXISTS posthorn_outbox_parked ON posthorn_outbox (parked_at) WHERE parked_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS posthorn_outbox_published ON posthorn_outbox (published_at)
  WHERE published_at IS NOT NULL;

-- Wakes the relay at the commit. Without the trigger it finds the rows within two seconds: leave it out where
-- transactions are prepared (PREPARE TRANSACTION refuses NOTIFY), or where thousands commit each second, since those with
-- a NOTIFY commit one after the other.
CREATE OR REPLACE FUNCTION posthorn_outbox_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_catalog.pg_notify('posthorn_outbox', '');
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER posthorn_outbox_notify AFTER INSERT ON posthorn_outbox
  FOR EACH STATEMENT EXECUTE FUNCTION posthorn_outbox_notify();

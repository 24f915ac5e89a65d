/** Creates events and what the event stream needs: the highest sequence number that retention deleted, and tickets. */
export const CREATE_EVENTS = [
  `CREATE TABLE "event" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "sequence" bigserial NOT NULL,
    "key" text NOT NULL,
    "body" bytea NOT NULL,
    "emitted_at" timestamptz NOT NULL,
    "trace_id" text NOT NULL,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT "PK_30c2f3bbaf6d34a55f8ae6e4614" PRIMARY KEY ("id"),
    CONSTRAINT "FK_035c9a57e7f1391a44b79b6c015" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id")
  )`,
  `CREATE INDEX "event_created_idx" ON "event" ("created_at")`,
  `CREATE UNIQUE INDEX "event_stream_idx" ON "event" ("organisation_id", "sequence")`,

  `CREATE TABLE "event_horizon" (
    "organisation_id" text NOT NULL,
    "sequence" bigint NOT NULL,
    CONSTRAINT "PK_f4a3dd36cc4f044254df2ee3d3f" PRIMARY KEY ("organisation_id"),
    CONSTRAINT "FK_f4a3dd36cc4f044254df2ee3d3f" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id")
  )`,

  `CREATE TABLE "stream_ticket" (
    "hash" bytea NOT NULL,
    "api_key_id" uuid NOT NULL,
    "expires_at" timestamptz NOT NULL,
    "key_hash" bytea NOT NULL,
    CONSTRAINT "PK_73f6bbc34e41df67d37cf7ba436" PRIMARY KEY ("hash"),
    CONSTRAINT "FK_4a59188deb96ec1e28cd6c0e972" FOREIGN KEY ("api_key_id") REFERENCES "api_key" ("id") ON DELETE CASCADE
  )`,
]

/** Creates webhooks, deliveries, attempts and retry jobs. */
export const CREATE_DELIVERIES = [
  `CREATE TABLE "webhook" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "url" text NOT NULL,
    "subscribed_event_keys" text array NOT NULL,
    "enabled" boolean NOT NULL,
    "secret" text,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    "updated_at" timestamptz NOT NULL DEFAULT now(),
    "deleted_at" timestamptz,
    CONSTRAINT "PK_e6765510c2d078db49632b59020" PRIMARY KEY ("id"),
    CONSTRAINT "FK_988d8b78200993e87305cf419c8" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id")
  )`,
  `CREATE INDEX "webhook_organisation_idx" ON "webhook" ("organisation_id", "created_at", "id")
    WHERE deleted_at IS NULL`,

  `CREATE TABLE "delivery" (
    "id" uuid NOT NULL,
    "event_id" uuid NOT NULL,
    "webhook_id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "state" text NOT NULL,
    "attempts" integer NOT NULL DEFAULT 0,
    "claims" integer NOT NULL DEFAULT 0,
    "next_attempt_at" timestamptz,
    "owner" uuid,
    "lease_until" timestamptz,
    "sweep_at" timestamptz,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    "started_at" timestamptz,
    "completed_at" timestamptz,
    "retry_requested" boolean NOT NULL DEFAULT false,
    "attempt_requested" boolean NOT NULL DEFAULT false,
    "is_test" boolean NOT NULL DEFAULT false,
    "stop_reason" text,
    CONSTRAINT "delivery_state_check"
      CHECK ("state" IN ('pending', 'in_progress', 'waiting', 'completed', 'failed', 'stopped')),
    CONSTRAINT "delivery_stop_reason_check" CHECK (
      "stop_reason" IN ('webhook_disabled', 'webhook_deleted', 'unsubscribed', 'discarded', 'test_failed')),
    CONSTRAINT "PK_ffad7bf84e68716cd9af89003b0" PRIMARY KEY ("id"),
    CONSTRAINT "FK_7284fd7d496949e5ca68880d751" FOREIGN KEY ("event_id") REFERENCES "event" ("id"),
    CONSTRAINT "FK_498828e0ce39ad45b5f9dcbf56b" FOREIGN KEY ("webhook_id") REFERENCES "webhook" ("id")
  )`,
  `CREATE INDEX "delivery_event_idx" ON "delivery" ("event_id")`,
  // Lists and statistics.
  `CREATE INDEX "delivery_webhook_idx" ON "delivery" ("webhook_id", "id")`,
  `CREATE INDEX "delivery_waiting_idx" ON "delivery" ("webhook_id", "id") WHERE state = 'waiting'`,
  `CREATE INDEX "delivery_failed_idx" ON "delivery" ("webhook_id", "id") WHERE state = 'failed'`,
  `CREATE INDEX "delivery_stopped_idx" ON "delivery" ("webhook_id", "id") WHERE state = 'stopped' AND NOT is_test`,
  // Incidents.
  `CREATE INDEX "delivery_unresolved_idx" ON "delivery" ("webhook_id")
    WHERE state IN ('waiting', 'failed', 'in_progress') AND attempts > 0`,
  // The sweeper. A delivery is in at most one of these four, so it costs one index entry.
  `CREATE INDEX "delivery_unstarted_idx" ON "delivery" ("webhook_id", "sweep_at")
    WHERE state IN ('pending', 'in_progress', 'waiting') AND started_at IS NULL AND attempts = 0`,
  `CREATE INDEX "delivery_started_idx" ON "delivery" ("sweep_at")
    WHERE state IN ('pending', 'in_progress', 'waiting') AND (started_at IS NOT NULL OR attempts > 0)`,
  `CREATE INDEX "delivery_signal_idx" ON "delivery" ("sweep_at")
    WHERE sweep_at IS NOT NULL AND (state = 'stopped' OR state = 'completed' AND started_at IS NOT NULL)`,
  `CREATE INDEX "delivery_backfill_idx" ON "delivery" ("sweep_at")
    WHERE sweep_at IS NOT NULL AND state = 'completed' AND started_at IS NULL`,
  // Retention.
  `CREATE INDEX "delivery_purge_idx" ON "delivery" ("state", "completed_at") WHERE completed_at IS NOT NULL`,

  `CREATE TABLE "attempt" (
    "delivery_id" uuid NOT NULL,
    "number" integer NOT NULL,
    "trigger" text NOT NULL,
    "url" text NOT NULL,
    "started_at" timestamptz NOT NULL,
    "duration_ms" integer NOT NULL,
    "outcome" text NOT NULL,
    "failure_code" text,
    "status_code" integer,
    "error" text,
    "response_headers" jsonb,
    "response_body" text,
    "response_truncated" boolean NOT NULL DEFAULT false,
    "webhook_id" uuid,
    CONSTRAINT "attempt_outcome_check" CHECK ("outcome" IN ('succeeded', 'failed')),
    CONSTRAINT "PK_c64a618b500d49b8c2935696d6c" PRIMARY KEY ("delivery_id", "number"),
    CONSTRAINT "FK_29d1d75ef343dd2d2c3ce9a17ea" FOREIGN KEY ("delivery_id")
      REFERENCES "delivery" ("id") ON DELETE CASCADE
  )`,
  // Each attempt is in one of the two: the failures since the last success are found without reading all attempts.
  `CREATE INDEX "attempt_succeeded_idx" ON "attempt" ("webhook_id", "started_at") WHERE outcome = 'succeeded'`,
  `CREATE INDEX "attempt_failed_idx" ON "attempt" ("webhook_id", "started_at") WHERE outcome = 'failed'`,

  `CREATE TABLE "retry_job" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "webhook_id" uuid,
    "mode" text NOT NULL,
    "requested_by" text NOT NULL,
    "state" text NOT NULL DEFAULT 'running',
    "sweep_at" timestamptz,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force', 'stopped')),
    CONSTRAINT "retry_job_state_check" CHECK ("state" IN ('running', 'done')),
    CONSTRAINT "PK_RETRY_JOB" PRIMARY KEY ("id"),
    CONSTRAINT "FK_b920e3c5f770279cdf7016cfed2" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id"),
    CONSTRAINT "FK_939c64d36c6d49a005d7a4530f8" FOREIGN KEY ("webhook_id") REFERENCES "webhook" ("id")
  )`,
  `CREATE INDEX "retry_job_sweep_idx" ON "retry_job" ("sweep_at") WHERE sweep_at IS NOT NULL`,

  `CREATE TABLE "retry_job_webhook" (
    "job_id" uuid NOT NULL,
    "webhook_id" uuid NOT NULL,
    "total" integer NOT NULL,
    "done" integer NOT NULL DEFAULT 0,
    "cursor" uuid,
    "under_way" uuid array NOT NULL DEFAULT '{}',
    "finished" boolean NOT NULL DEFAULT false,
    "succeeded" integer NOT NULL DEFAULT 0,
    "failed" integer NOT NULL DEFAULT 0,
    "under_way_numbers" integer array NOT NULL DEFAULT '{}',
    CONSTRAINT "PK_RETRY_JOB_WEBHOOK" PRIMARY KEY ("job_id", "webhook_id"),
    CONSTRAINT "FK_d62acdba56f95b1db659ee1e6ba" FOREIGN KEY ("job_id") REFERENCES "retry_job" ("id") ON DELETE CASCADE,
    CONSTRAINT "FK_21c2194da46a8242dac7bd66a94" FOREIGN KEY ("webhook_id") REFERENCES "webhook" ("id")
  )`,
]

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

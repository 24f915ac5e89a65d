/** Creates incidents and their notifications. */
export const CREATE_INCIDENTS = [
  `CREATE TABLE "incident" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "webhook_id" uuid NOT NULL,
    "opened_at" timestamptz NOT NULL DEFAULT now(),
    "closed_at" timestamptz,
    "resumed_at" timestamptz,
    "exhausted_at" timestamptz,
    "first_notified_at" timestamptz,
    "second_notified_at" timestamptz,
    "resting" boolean NOT NULL DEFAULT false,
    "sweep_at" timestamptz,
    CONSTRAINT "PK_5f90b28b0b8238d89ee8edcf96e" PRIMARY KEY ("id"),
    CONSTRAINT "FK_bf8936bb457206cddabf8559f15" FOREIGN KEY ("webhook_id") REFERENCES "webhook" ("id")
  )`,
  `CREATE UNIQUE INDEX "incident_open_idx" ON "incident" ("webhook_id") WHERE closed_at IS NULL`,
  `CREATE INDEX "incident_webhook_idx" ON "incident" ("webhook_id", "opened_at")`,
  `CREATE INDEX "incident_sweep_idx" ON "incident" ("sweep_at") WHERE sweep_at IS NOT NULL`,
  `CREATE INDEX "incident_purge_idx" ON "incident" ("closed_at") WHERE closed_at IS NOT NULL`,

  `CREATE TABLE "notification" (
    "id" uuid NOT NULL,
    "incident_id" uuid NOT NULL,
    "kind" smallint NOT NULL,
    "channel" text NOT NULL,
    "recipient" text NOT NULL,
    "state" text NOT NULL DEFAULT 'pending',
    "claim" uuid,
    "claimed_at" timestamptz,
    "sent_at" timestamptz,
    "error" text,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT "notification_kind_check" CHECK ("kind" IN (1, 2)),
    CONSTRAINT "notification_channel_check" CHECK ("channel" IN ('email', 'push')),
    CONSTRAINT "notification_state_check" CHECK ("state" IN ('pending', 'sending', 'sent', 'failed', 'unknown')),
    CONSTRAINT "PK_705b6c7cdf9b2c2ff7ac7872cb7" PRIMARY KEY ("id"),
    CONSTRAINT "FK_b24d909016bd67eef08e0f8e952" FOREIGN KEY ("incident_id")
      REFERENCES "incident" ("id") ON DELETE CASCADE
  )`,
  `CREATE UNIQUE INDEX "notification_recipient_idx" ON "notification" ("incident_id", "kind", "channel", "recipient")`,
]

/** Creates the audit trail. Triggers refuse every change of an entry, and its deletion before it is 30 days old. */
export const CREATE_AUDIT = [
  `CREATE TABLE "audit_entry" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "at" timestamptz NOT NULL DEFAULT now(),
    "member_id" text,
    "api_key_id" uuid,
    "action" text NOT NULL,
    "webhook_id" uuid,
    "delivery_id" uuid,
    "details" jsonb NOT NULL,
    "address" text,
    "request_id" text,
    CONSTRAINT "PK_58a130a4b9da189f46ba2a01801" PRIMARY KEY ("id")
  )`,
  `CREATE INDEX "audit_entry_organisation_idx" ON "audit_entry" ("organisation_id", "id")`,
  `CREATE INDEX "audit_entry_purge_idx" ON "audit_entry" ("at")`,
  `CREATE FUNCTION "audit_entry_append_only"() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF TG_OP = 'DELETE' AND OLD.at < now() - interval '30 days' THEN RETURN OLD; END IF;
     RAISE EXCEPTION 'the audit trail is append-only';
   END $$`,
  `CREATE TRIGGER "audit_entry_append_only" BEFORE UPDATE OR DELETE ON "audit_entry"
    FOR EACH ROW EXECUTE FUNCTION "audit_entry_append_only"()`,
  `CREATE TRIGGER "audit_entry_not_truncated" BEFORE TRUNCATE ON "audit_entry"
    FOR EACH STATEMENT EXECUTE FUNCTION "audit_entry_append_only"()`,
]

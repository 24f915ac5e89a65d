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

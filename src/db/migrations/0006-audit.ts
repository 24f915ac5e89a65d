import type { MigrationInterface, QueryRunner } from 'typeorm'

/** The audit trail, which the database itself keeps from being changed. */
export class Audit6 implements MigrationInterface {
  readonly name = 'Audit1764500000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `CREATE TABLE "audit_entry" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
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
  `CREATE FUNCTION "audit_entry_stays"() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF TG_OP = 'DELETE' AND OLD.at < now() - interval '30 days' THEN RETURN OLD; END IF;
     RAISE EXCEPTION 'the audit trail is append-only';
   END $$`,
  `CREATE TRIGGER "audit_entry_stays" BEFORE UPDATE OR DELETE ON "audit_entry"
    FOR EACH ROW EXECUTE FUNCTION "audit_entry_stays"()`,
  `CREATE TRIGGER "audit_entry_not_truncated" BEFORE TRUNCATE ON "audit_entry"
    FOR EACH STATEMENT EXECUTE FUNCTION "audit_entry_stays"()`,
]

const DOWN = [`DROP TABLE "audit_entry"`, `DROP FUNCTION "audit_entry_stays"()`]

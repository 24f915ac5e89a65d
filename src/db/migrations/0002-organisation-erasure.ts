import { createMigration } from './migration-steps.ts'

const UP = [
  `CREATE TABLE "organisation_erasure" (
    "organisation_id" text NOT NULL,
    "requested_at" timestamptz NOT NULL DEFAULT now(),
    "sweep_at" timestamptz NOT NULL,
    "erased" jsonb NOT NULL,
    CONSTRAINT "PK_ORGANISATION_ERASURE" PRIMARY KEY ("organisation_id"),
    CONSTRAINT "FK_2ef083ac2e70ac1f9359796db7e" FOREIGN KEY ("organisation_id")
      REFERENCES "organisation" ("id") ON DELETE CASCADE
  )`,
  `CREATE INDEX "organisation_erasure_sweep_idx" ON "organisation_erasure" ("sweep_at")`,
  `CREATE OR REPLACE FUNCTION "audit_entry_append_only"() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF TG_OP = 'DELETE' THEN
       IF OLD.at < now() - interval '30 days' THEN RETURN OLD; END IF;
       IF EXISTS (SELECT 1 FROM "organisation_erasure" WHERE "organisation_id" = OLD.organisation_id) THEN
         RETURN OLD;
       END IF;
     END IF;
     RAISE EXCEPTION 'the audit trail is append-only';
   END $$`,
]

const DOWN = [
  `CREATE OR REPLACE FUNCTION "audit_entry_append_only"() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF TG_OP = 'DELETE' AND OLD.at < now() - interval '30 days' THEN RETURN OLD; END IF;
     RAISE EXCEPTION 'the audit trail is append-only';
   END $$`,
  `DROP TABLE "organisation_erasure"`,
]

/** Creates the record of an organisation that is being erased, and lets its audit entries go with it. */
export const OrganisationErasure2 = createMigration('OrganisationErasure1764100000000', UP, DOWN)

import { createIndexMigration, createMigration } from './migration-steps.ts'

/** The trigger that lets entries of the audit trail be deleted from this age on, or with their organisation. */
const appendOnly = (minAge: string): string =>
  `CREATE OR REPLACE FUNCTION "audit_entry_append_only"() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF TG_OP = 'DELETE' THEN
       IF OLD.at < now() - interval '${minAge}' THEN RETURN OLD; END IF;
       IF EXISTS (SELECT 1 FROM "organisation_erasure" WHERE "organisation_id" = OLD.organisation_id) THEN
         RETURN OLD;
       END IF;
     END IF;
     RAISE EXCEPTION 'the audit trail is append-only';
   END $$`

/** Counts the age of audit entries in hours, as retention does: 30 days of a time zone may be 721 hours. */
export const AuditAge15 = createMigration(
  'AuditAge1765400000000',
  [appendOnly('720 hours')],
  [appendOnly('30 days')],
)

/** Creates the index of the keys of a member, the revoked ones among them, which are deleted with it. */
export const ApiKeyMember15 = createIndexMigration('ApiKeyMember1765400000001', [
  ['api_key_member_idx', `"api_key" ("organisation_id", "member_id")`],
])

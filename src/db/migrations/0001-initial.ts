import type { MigrationInterface, QueryRunner } from 'typeorm'
import { CREATE_DELIVERIES, CREATE_EVENTS } from './initial/deliveries.ts'
import { CREATE_AUDIT, CREATE_INCIDENTS } from './initial/incidents.ts'
import { CREATE_ORGANISATIONS } from './initial/organisations.ts'

/** Creates the schema of the first release. The statements are in `initial/`, one file for each area. */
export class Initial1 implements MigrationInterface {
  readonly name = 'Initial1764000000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

/** Referenced tables before the tables that reference them. */
const UP = [
  ...CREATE_ORGANISATIONS,
  ...CREATE_EVENTS,
  ...CREATE_DELIVERIES,
  ...CREATE_INCIDENTS,
  ...CREATE_AUDIT,
]

/** The reverse order. Indexes, sequences and triggers are dropped with their table. */
const DOWN = [
  `DROP TABLE "audit_entry"`,
  `DROP FUNCTION "audit_entry_append_only"()`,
  `DROP TABLE "notification"`,
  `DROP TABLE "incident"`,
  `DROP TABLE "retry_job_webhook"`,
  `DROP TABLE "retry_job"`,
  `DROP TABLE "attempt"`,
  `DROP TABLE "delivery"`,
  `DROP TABLE "webhook"`,
  `DROP TABLE "stream_ticket"`,
  `DROP TABLE "event_horizon"`,
  `DROP TABLE "event"`,
  `DROP TABLE "idempotency_key"`,
  `DROP TABLE "push_subscription"`,
  `DROP TABLE "session"`,
  `DROP TABLE "api_key"`,
  `DROP TABLE "member"`,
  `DROP TABLE "organisation"`,
]

import type { MigrationInterface, QueryRunner } from 'typeorm'

/** The event stream: events in their order per organisation, how far back they are complete, and tickets. */
export class EventStream8 implements MigrationInterface {
  readonly name = 'EventStream1764700000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `CREATE UNIQUE INDEX "event_stream_idx" ON "event" ("organisation_id", "sequence")`,
  `CREATE TABLE "event_horizon" (
    "organisation_id" text NOT NULL,
    "sequence" bigint NOT NULL,
    CONSTRAINT "PK_f4a3dd36cc4f044254df2ee3d3f" PRIMARY KEY ("organisation_id"),
    CONSTRAINT "FK_f4a3dd36cc4f044254df2ee3d3f" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id")
  )`,
  // What was deleted before this migration is not known. Nothing younger than a day can have been.
  `INSERT INTO "event_horizon" ("organisation_id", "sequence")
   SELECT "organisation_id", max("sequence") FROM "event" WHERE "created_at" < now() - interval '1 day'
    GROUP BY "organisation_id"`,
  `CREATE TABLE "stream_ticket" (
    "hash" bytea NOT NULL,
    "api_key_id" uuid NOT NULL,
    "expires_at" TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT "PK_73f6bbc34e41df67d37cf7ba436" PRIMARY KEY ("hash"),
    CONSTRAINT "FK_4a59188deb96ec1e28cd6c0e972" FOREIGN KEY ("api_key_id") REFERENCES "api_key" ("id") ON DELETE CASCADE
  )`,
]

const DOWN = [`DROP TABLE "stream_ticket"`, `DROP TABLE "event_horizon"`, `DROP INDEX "event_stream_idx"`]

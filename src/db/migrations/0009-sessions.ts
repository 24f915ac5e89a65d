import type { MigrationInterface, QueryRunner } from 'typeorm'

/** Browsers that are signed in to the developer area. */
export class Sessions9 implements MigrationInterface {
  readonly name = 'Sessions1764800000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `CREATE TABLE "session" (
    "hash" bytea NOT NULL,
    "api_key_id" uuid NOT NULL,
    "created_at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
    "expires_at" TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT "PK_9a27ee81fbc0bb9e5260ed6f82d" PRIMARY KEY ("hash"),
    CONSTRAINT "FK_cd1db55adf92d0a5e2f3c0aa79f" FOREIGN KEY ("api_key_id") REFERENCES "api_key"("id") ON DELETE CASCADE
  )`,
  `CREATE INDEX "session_api_key_idx" ON "session" ("api_key_id", "created_at")`,
  `CREATE INDEX "session_expires_idx" ON "session" ("expires_at")`,
]

const DOWN = [`DROP TABLE "session"`]

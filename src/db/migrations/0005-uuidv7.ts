import type { MigrationInterface, QueryRunner } from 'typeorm'

/**
 * Creates `uuidv7()` where PostgreSQL brings none (before version 18). After an upgrade of PostgreSQL its own function is
 * found first, and this one is never called again.
 */
export class Uuidv7Function5 implements MigrationInterface {
  readonly name = 'Uuidv7Function1764400000000'

  async up(runner: QueryRunner): Promise<void> {
    const [{ isMissing }] = (await runner.query(
      `SELECT to_regprocedure('pg_catalog.uuidv7()') IS NULL AS "isMissing"`,
    )) as [{ isMissing: boolean }]
    if (isMissing) await runner.query(CREATE_UUIDV7)
  }

  async down(runner: QueryRunner): Promise<void> {
    // Unqualified it could name PostgreSQL's own function, which cannot be dropped.
    await runner.query(`DO $$ BEGIN
      EXECUTE format('DROP FUNCTION IF EXISTS %I."uuidv7"(interval)', current_schema());
    END $$`)
  }
}

/**
 * RFC 9562, version 7, method 3, as PostgreSQL 18 does it: 48 bits of Unix milliseconds, the version, 12 bits of the
 * fraction of the millisecond, and 62 random bits under the variant of `gen_random_uuid()`. `shift` moves the time.
 */
const CREATE_UUIDV7 = `CREATE FUNCTION "uuidv7"("shift" interval DEFAULT interval '0') RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT encode(
    substring(int8send(us / 1000) FROM 3)
      || substring(int8send(28672 + (us % 1000) * 4096 / 1000) FROM 7)
      || substring(uuid_send(gen_random_uuid()) FROM 9), 'hex')::uuid
    FROM (SELECT floor(extract(epoch FROM clock_timestamp() + shift) * 1000000)::bigint AS us) now
$$`

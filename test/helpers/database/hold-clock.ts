import type { DataSource } from 'typeorm'

/** Holds the clock of the delivery protocol in this database at one instant. */
export async function holdClock(dataSource: DataSource, at: Date): Promise<void> {
  await dataSource.query(
    `CREATE OR REPLACE FUNCTION delivery_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
       AS $$ SELECT timestamptz '${at.toISOString()}' $$`,
  )
}

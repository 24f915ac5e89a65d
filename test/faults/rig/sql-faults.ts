import type { DataSource } from 'typeorm'

/**
 * Has statements that write to `table` fail with `sqlstate`, whatever it means: `53100` disk full, `57014` cancelled …
 * `when` narrows it, as SQL over NEW. Returns what takes the fault away again.
 */
export async function failWrites(
  dataSource: DataSource,
  fault: { table: string; sqlstate: string; on?: 'INSERT' | 'UPDATE' | 'INSERT OR UPDATE'; when?: string },
): Promise<() => Promise<void>> {
  const { table, sqlstate, on = 'INSERT', when = 'true' } = fault
  const name = `fault_${table}_${sqlstate.toLowerCase()}`
  await dataSource.query(`CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'injected fault' USING ERRCODE = '${sqlstate}'; END $$`)
  await dataSource.query(
    `CREATE TRIGGER ${name} BEFORE ${on} ON ${table} FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION ${name}()`,
  )
  return async () => {
    await dataSource.query(`DROP TRIGGER ${name} ON ${table}`)
  }
}

import type { DataSource, EntityManager } from 'typeorm'

/** The pool, or the transaction one works in. */
export type Db = DataSource | EntityManager

/** Runs one parameterised statement and returns its rows. `Row` is the shape its SELECT or RETURNING list gives. */
export async function rows<Row>(db: Db, sql: string, parameters: unknown[] = []): Promise<Row[]> {
  const result: unknown = await db.query(sql, parameters)
  return resultRows(result) as Row[]
}

/** The same for a statement that gives at most one row. */
export async function firstRow<Row>(db: Db, sql: string, parameters: unknown[] = []): Promise<Row | null> {
  const [first] = await rows<Row>(db, sql, parameters)
  return first ?? null
}

/** TypeORM answers SELECT and INSERT with rows, but UPDATE and DELETE with `[rows, count]`. */
function resultRows(result: unknown): unknown[] {
  if (!Array.isArray(result)) return []
  const [first, count] = result as unknown[]
  return Array.isArray(first) && typeof count === 'number' ? (first as unknown[]) : (result as unknown[])
}

import type { ClientBase } from 'pg'
import { EntityManager } from 'typeorm'
import type { Db } from './db.ts'

/** A statement that each connection parses and plans once. `name` has to be its own among all of Posthorn's. */
export type Prepared = { name: string; text: string }

/**
 * Runs a prepared statement and returns its rows: for the few that every event needs. TypeORM knows of none, so this
 * asks it for the connection.
 */
export async function preparedRows<Row extends object>(
  db: Db,
  { name, text }: Prepared,
  values: unknown[],
): Promise<Row[]> {
  const pool = db instanceof EntityManager ? db.dataSource : db
  const transaction = db instanceof EntityManager ? db.queryRunner : undefined
  const runner = transaction ?? pool.createQueryRunner()
  try {
    const connection = (await runner.connect()) as ClientBase
    const { rows } = await connection.query<Row>({ name, text, values })
    return rows
  } finally {
    if (runner !== transaction) await runner.release()
  }
}

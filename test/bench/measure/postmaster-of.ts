import pg from 'pg'
import { processTimes } from './cpu.ts'

/** The process that all backends of a PostgreSQL on this machine are children of. */
export async function postmasterOf(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    return processTimes(rows[0]!.pid)?.parentPid ?? 0
  } finally {
    await client.end()
  }
}

import type { QueryRunner } from 'typeorm'

/**
 * Refuses a migration that needs every process of Posthorn stopped while one is connected to this database. A database
 * without an organisation is not in use yet.
 *
 * @throws Error that says how many sessions there are, from where, and what to do
 */
export async function refuseOtherProcesses(runner: QueryRunner): Promise<void> {
  const [others] = (await runner.query(
    `SELECT count(*)::int AS "count", string_agg(DISTINCT coalesce(host("client_addr"), 'this machine'), ', ') AS "hosts"
       FROM "pg_stat_activity"
      WHERE "datname" = current_database() AND "application_name" = 'posthorn' AND "pid" <> pg_backend_pid()
        AND EXISTS (SELECT 1 FROM "organisation")`,
  )) as [{ count: number; hosts: string | null }]
  if (others.count === 0) return
  throw new Error(
    [
      'This migration needs all processes of Posthorn stopped.',
      `Sessions of Posthorn that are connected to this database: ${others.count}, from ${others.hosts}.`,
      'Stop every posthorn serve, api and worker, and run posthorn migrate again. Nothing was changed by this migration.',
      'A pooler may keep the sessions of stopped processes: end them with pg_terminate_backend.',
    ].join('\n'),
  )
}

import type { DataSource } from 'typeorm'
import { createDataSource, type DatabaseOptions } from '../db/connection/data-source.ts'
import type { Logger } from '../observability/logger.ts'
import { describeError } from './visible-text.ts'

type ConnectOptions = Omit<DatabaseOptions, 'onIdleError'> & { logger?: Logger }

/**
 * Opens the pool to the database of `variable`. A `logger` gets each idle connection that breaks. Throws an error that says in
 * words why that is impossible.
 */
export async function connect(
  { logger, ...options }: ConnectOptions,
  variable = 'DATABASE_URL',
): Promise<DataSource> {
  const onIdleError = (error: Error): void =>
    logger?.warn({ event: 'database.connection_lost', err: error }, 'database.connection_lost')
  try {
    return await createDataSource({ ...options, onIdleError }).initialize()
  } catch (error) {
    throw new Error(describeRefusal(options.url, error).replaceAll('DATABASE_URL', variable), {
      cause: error,
    })
  }
}

/** The user name and the password of the URL are left out; what the server answers names the user at most. */
function describeRefusal(databaseUrl: string, error: unknown): string {
  const { hostname, port, pathname, searchParams } = new URL(databaseUrl)
  const host = searchParams.get('host') ?? (hostname === '' ? 'localhost' : hostname)
  const address = `${host}:${port === '' ? '5432' : port}`
  const reason = describeError(error)
  return [
    `No connection to PostgreSQL at ${address}${pathname}, the address in DATABASE_URL: ${reason}.`,
    cureOf(codeOf(error), address),
  ].join('\n')
}

/** By the code of the system, or the SQLSTATE of PostgreSQL. */
function cureOf(code: string, address: string): string {
  if (code === 'ECONNREFUSED')
    return `Nothing listens at ${address}: start PostgreSQL, or correct DATABASE_URL.`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return 'The name of that host is unknown: correct DATABASE_URL.'
  if (code.startsWith('28'))
    return 'Correct the user or the password in DATABASE_URL, or let the server accept them.'
  if (code === '3D000') return 'Create that database, or correct the name in DATABASE_URL.'
  if (code === '08P01') return 'Behind a pooler in transaction mode, set DATABASE_POOLER=transaction.'
  return 'Check DATABASE_URL and the network between; `posthorn doctor` examines more.'
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

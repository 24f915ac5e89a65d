import { createHash, randomBytes } from 'node:crypto'
import type { DataSource } from 'typeorm'
import type { Caller } from '../db/queries/api-keys.ts'
import { insertStreamTicket, takeStreamTicket } from '../db/queries/stream-tickets.ts'
import { unauthenticated } from '../errors.ts'
import type { ApiDependencies } from './api.ts'

/** Long enough to open a stream with it, too short to be of use in somebody's log. */
const TICKET_SECONDS = 30

const TICKET_BYTES = 32

/**
 * A ticket that opens one stream with the rights of the caller's key. It is seen this once: its hash is kept.
 * Throws the 401 of a bad key when the key's value was replaced meanwhile.
 */
export async function issueTicket(
  { dataSource, known }: Pick<ApiDependencies, 'dataSource' | 'known'>,
  { organisationId, apiKeyId, keyHash }: Caller,
): Promise<{ ticket: string; expiresAt: Date }> {
  const ticket = randomBytes(TICKET_BYTES).toString('base64url')
  const hash = hashOf(ticket)
  const expiresAt = await insertStreamTicket(dataSource, {
    hash,
    organisationId,
    apiKeyId,
    keyHash,
    seconds: TICKET_SECONDS,
  })
  if (expiresAt === null) throw unauthenticated()
  known.add(hash)
  return { ticket, expiresAt }
}

/** The caller that a ticket stands for. It is used up, whatever becomes of the request. Throws the 401 of a bad key. */
export async function redeemTicket(dataSource: DataSource, ticket: string): Promise<Caller> {
  const caller = await takeStreamTicket(dataSource, hashOf(ticket))
  if (caller === null) throw unauthenticated()
  return caller
}

function hashOf(ticket: string): Buffer {
  return createHash('sha256').update(ticket, 'utf8').digest()
}

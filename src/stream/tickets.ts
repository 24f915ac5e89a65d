import type { DataSource } from 'typeorm'
import { hashCredential, newToken } from '../credentials.ts'
import type { KeyCaller } from '../domain/actor.ts'
import type { KnownCredentials } from '../accounts/caller-lookup.ts'
import { insertStreamTicket, takeStreamTicket } from '../db/queries/one-use-tokens.ts'
import { ProblemError, unauthenticated } from '../problem-error.ts'

/** Long enough to open a stream, too short to be of use to a reader of a log. */
const TICKET_TTL_SECONDS = 30

/**
 * Issues a ticket that opens one stream with the rights of the caller's key. The ticket is returned this once: only its
 * hash is stored. Throws the 401 of an invalid key when the key's value was replaced meanwhile.
 */
export async function issueTicket(
  { dataSource, known }: { dataSource: DataSource; known: Pick<KnownCredentials, 'add'> },
  { organisationId, apiKeyId, keyHash }: KeyCaller,
): Promise<{ ticket: string; expiresAt: Date }> {
  const ticket = newToken()
  const hash = hashCredential(ticket)
  const expiresAt = await insertStreamTicket(dataSource, {
    hash,
    organisationId,
    apiKeyId,
    keyHash,
    seconds: TICKET_TTL_SECONDS,
  })
  if (expiresAt === null) throw unauthenticated()
  known.add(hash)
  return { ticket, expiresAt }
}

/** Uses a ticket up and returns the caller it was issued to. Throws 401 where it is not valid. */
export async function redeemTicket(dataSource: DataSource, ticket: string): Promise<KeyCaller> {
  const caller = await takeStreamTicket(dataSource, hashCredential(ticket))
  if (caller === null)
    throw new ProblemError('unauthenticated', {
      detail: 'The ticket is unknown, used or expired. Request another one.',
    })
  return caller
}

import type { Grants } from './permissions.ts'

/**
 * The member that a request acts as. `keyHash`: of the API key's value at authentication, which may be replaced later.
 * Without a key in a session that a portal link opened.
 */
export type Caller = Grants & {
  organisationId: string
  memberId: string
  apiKeyId: string | null
  keyHash: Buffer | null
  /** The organisation is being erased: only operators still see it. */
  isErasing: boolean
}

/** A caller with an API key. */
export type KeyCaller = Caller & { apiKeyId: string; keyHash: Buffer }

/** A caller with the origin of its request: the sender's IP address, and the id of the request in the log. */
export type Actor = Caller & { address: string; requestId: string }

import type { KeyCaller } from '../../domain/actor.ts'
import type { CallerLookup } from '../../accounts/caller-lookup.ts'
import { isKeyShaped, MIN_KEY_LENGTH } from '../../domain/api-key-shape.ts'
import { unauthenticated } from '../../errors.ts'

/** Looked up in place of a malformed key, so that a refusal takes equally long. No key is that short. */
const NO_KEY = ''

/**
 * Returns the caller of the `x-api-key` header. Throws the same 401, after the same work, for every reason. Node joins
 * two headers as `a, b`, which is malformed because of its space.
 */
export async function authenticateApiKey(
  findCaller: CallerLookup,
  header: string,
  minKeyLength = MIN_KEY_LENGTH,
): Promise<KeyCaller> {
  const caller = await findCaller(isKeyShaped(header, minKeyLength) ? header : NO_KEY)
  if (caller === null) throw unauthenticated()
  return caller
}

/* How the commands that call the API of a Posthorn read its answers. */

/** An event to a thousand webhooks is answered with 97 KB. */
const MAX_ANSWER_BYTES = 256 * 1024

/** Returns a body that is JSON of at most MAX_ANSWER_BYTES, and null for any other. Rejects where the connection breaks. */
export async function readJson({ body }: Response): Promise<unknown> {
  const parts: AsyncIterable<Uint8Array> | Uint8Array[] = body ?? []
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop closes the connection.
  for await (const chunk of parts) {
    size += chunk.length
    if (size > MAX_ANSWER_BYTES) return null
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    return null
  }
}

/** What a problem document (RFC 9457) says. */
type Problem = { code: string; detail?: string; errors?: { pointer?: string; detail?: string }[] }

/** Returns the problem document of an answer, or null where it is none of Posthorn. */
export function problemIn(answer: unknown): Problem | null {
  const { type, code, detail, errors } = (answer ?? {}) as Partial<Record<keyof Problem | 'type', unknown>>
  // Gateways refuse in JSON with a code too.
  if (typeof code !== 'string' || type !== `urn:posthorn:problem:${code}`) return null
  return {
    code,
    ...(typeof detail === 'string' && { detail }),
    ...(Array.isArray(errors) && { errors: errors as NonNullable<Problem['errors']> }),
  }
}

/** Parses `Retry-After` in seconds, the form in which Posthorn sends it. Null where it names no delay, or 0. */
export function retryAfterMs(header: string | null): number | null {
  return header !== null && /^[1-9]\d{0,8}$/.test(header) ? Number(header) * 1_000 : null
}

const MAX_DELAY_MS = 30_000
const MAX_RETRY_AFTER_MS = 300_000

/** Doublings after which the delay is at its maximum whatever the server names. */
const MAX_DOUBLINGS = 16

/**
 * Returns after how many ms the API is tried again. The delay doubles with each failure in a row and is reduced by a random
 * part, so that many clients do not return at once; where the server names one, it is never shorter than that.
 * `random`: from 0 to 1.
 */
export function retryDelayMs(
  { retryMs, failures, retryAfterMs }: { retryMs: number; failures: number; retryAfterMs: number | null },
  random: number,
): number {
  if (retryAfterMs !== null) return Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) * (1 + random / 4)
  const fullMs = Math.min(retryMs * 2 ** Math.min(failures, MAX_DOUBLINGS), MAX_DELAY_MS)
  return fullMs * (0.5 + random / 2)
}

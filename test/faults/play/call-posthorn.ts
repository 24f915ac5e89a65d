import type { PlayWorld } from './world.ts'
import { nowMs } from './clock.ts'

export type Answered = { from: number; to: number; status: number; json: unknown }

/** Longer than Posthorn may take for any answer; what comes later is as good as none. */
const ANSWER_LIMIT_MS = 30_000

/**
 * One request to any running process that has an API. `status` is 0 where no answer came: the process was killed or
 * paused meanwhile, or there is none.
 */
export async function callPosthorn(
  world: Pick<PlayWorld, 'processes' | 'member'>,
  method: string,
  path: string,
  options: { body?: unknown; idempotencyKey?: string | null; which?: number } = {},
): Promise<Answered> {
  const { body, idempotencyKey = null, which = Math.floor(nowMs()) } = options
  const urls = world.processes.map((played) => played.apiUrl()).filter((url) => url !== null)
  const from = nowMs()
  const url = urls[which % Math.max(1, urls.length)]
  if (url === undefined) return { from, to: from, status: 0, json: null }
  try {
    const response = await fetch(`${url}/api/orgs/${world.member.organisationId}${path}`, {
      method,
      headers: {
        'x-api-key': world.member.apiKey,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
    })
    const json: unknown = await response.json().catch(() => null)
    return { from, to: nowMs(), status: response.status, json }
  } catch {
    return { from, to: nowMs(), status: 0, json: null }
  }
}

import { nowMs } from './clock.ts'
import type { PlayWorld } from './world.ts'

export type Answered = { process: string | null; from: number; to: number; status: number; json: unknown }

/** Longer than Posthorn may take for any answer; what comes later is as good as none. */
const ANSWER_LIMIT_MS = 30_000

let asked = 0

/**
 * One request to one of the processes that have an API, in turn. `status` is 0 where no answer came: the process was
 * killed or paused meanwhile, or there is none.
 */
export async function callPosthorn(
  world: Pick<PlayWorld, 'processes'>,
  method: string,
  path: string,
  options: { headers: Record<string, string>; body?: unknown },
): Promise<Answered> {
  const { headers, body } = options
  const apis = world.processes.filter((played) => played.apiUrl() !== null)
  const from = nowMs()
  const api = apis[asked++ % Math.max(1, apis.length)]
  if (api === undefined) return { process: null, from, to: from, status: 0, json: null }
  try {
    const response = await fetch(`${api.apiUrl()}${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
    })
    const json: unknown = await response.json().catch(() => null)
    return { process: api.name, from, to: nowMs(), status: response.status, json }
  } catch {
    return { process: api.name, from, to: nowMs(), status: 0, json: null }
  }
}

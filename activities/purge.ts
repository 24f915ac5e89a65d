import { purge, type PurgeDependencies } from '../src/retention/purge.ts'
import type { PurgeInput, PurgeResult } from '../workflows/messages.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/** Running twice is harmless: what is gone is not found again. */
export function createPurge(dependencies: PurgeDependencies): (limits: PurgeInput) => Promise<PurgeResult> {
  return (limits) => withHeartbeat(({ cancelled }) => purge(dependencies, limits, cancelled))
}

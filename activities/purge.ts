import { purge, type PurgeDependencies } from '../src/retention/purge.ts'
import type { PurgeInput, PurgeResult } from '../workflows/interface.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/** Running twice is harmless: deleted rows are not found again. */
export function createPurge(dependencies: PurgeDependencies): (limits: PurgeInput) => Promise<PurgeResult> {
  return (limits) => withHeartbeat(({ cancelled }) => purge(dependencies, limits, cancelled))
}

import type { ServerState } from '../../db/queries/server-state.ts'
import { ok, problem, type Finding } from './finding.ts'

/** The releases of PostgreSQL that the tests run on. */
const OLDEST_RELEASE = 15
const NEWEST_RELEASE = 18

export function versionFindings({ version, release }: Pick<ServerState, 'version' | 'release'>): Finding[] {
  const seen = `PostgreSQL ${version}`
  if (release < OLDEST_RELEASE) return [problem('database.version_unsupported', seen)]
  if (release > NEWEST_RELEASE) return [problem('database.version_untested', seen)]
  return [ok('database.version', seen)]
}

export function writableFindings({
  isStandby,
  isReadOnly,
}: Pick<ServerState, 'isStandby' | 'isReadOnly'>): Finding[] {
  if (isStandby) return [problem('database.read_only', 'the server is a standby')]
  if (isReadOnly) return [problem('database.read_only', 'default_transaction_read_only is on')]
  return [ok('database.writable', 'the server takes writes')]
}

export function durabilityFindings({
  fsync,
  fullPageWrites,
  synchronousCommit,
}: Pick<ServerState, 'fsync' | 'fullPageWrites' | 'synchronousCommit'>): Finding[] {
  const problems = [
    ...(fsync === 'off' ? [problem('database.fsync_off', 'fsync is off')] : []),
    ...(fullPageWrites === 'off'
      ? [problem('database.full_page_writes_off', 'full_page_writes is off')]
      : []),
    ...(synchronousCommit === 'off'
      ? [problem('database.synchronous_commit_off', 'synchronous_commit is off for this role')]
      : []),
  ]
  if (problems.length > 0) return problems
  return [
    ok(
      'database.durability',
      `fsync and full_page_writes are on, synchronous_commit is ${synchronousCommit}`,
    ),
  ]
}

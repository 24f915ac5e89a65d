import type { Step } from './permute.ts'
import type { AllDid, Did, Left, LeftDelivery } from './outcome.ts'

/** What a permutation led to, with the steps that waited for a lock. */
export type Ended = { waited: readonly Step[]; did: AllDid; left: Left }

/** Statements that pass over locked rows. */
const NEVER_WAITS = ['claim', 'renew-lease', 'sweep-later']

/** The sweeper examines every row that is not final within this time after it is due, or its lease is over. */
const SWEEP_BOUND_TENTHS = 600

/** PostgreSQL's code of a deadlock: one of its sessions is ended, and does its work again. */
export function isDeadlock(did: AllDid): boolean {
  return errorsOf(did).some((error) => error.startsWith('40P01'))
}

function errorsOf(did: AllDid): string[] {
  return Object.values(did).flatMap((session) => ('error' in session ? [session.error] : []))
}

/** What is promised of every permutation, whatever its sessions do. Returns what is broken. */
export function brokenRules({ waited, did, left }: Ended): string[] {
  const done = Object.values(did).flatMap((session) => ('error' in session ? [] : [session]))
  const unexpected = errorsOf(did).filter((error) => !error.startsWith('40P01'))
  return [
    ...unexpected.map((error) => `no session ends with an error: ${error}`),
    ...NEVER_WAITS.filter((step) => waited.some(({ name }) => name === step)).map(
      (step) => `${step} waits for no lock`,
    ),
    ...left.deliveries.flatMap((delivery) => [...standing(delivery), ...runs(delivery, done)]),
    ...confirmed(left, done),
    ...incidents(left),
  ]
}

/** What holds for a row, whatever has happened. */
function standing(row: LeftDelivery): string[] {
  const { state, attempts, recorded } = row
  const broken: string[] = []
  const isFinal = state === 'completed' || state === 'failed' || state === 'stopped'
  const heldUntil = Math.max(0, row.due ?? 0, row.lease ?? 0)
  if (!isFinal && (row.sweep === null || row.sweep > heldUntil + SWEEP_BOUND_TENTHS))
    broken.push('the sweeper examines every delivery that is not final, in time')
  if (state === 'stopped' && attempts === 0 && row.isTaken && !row.isTest)
    broken.push('a delivery that was never attempted is not stopped while its webhook takes it')
  if (state === 'waiting' && !row.isTaken && (row.due ?? 0) > 0)
    broken.push('a delivery that its webhook does not take does not wait for a retry')
  if (recorded.length !== attempts || recorded.some((attempt, index) => !attempt.startsWith(`${index + 1} `)))
    broken.push('each attempt is recorded once, in order')
  if (recorded.filter((attempt) => attempt.endsWith('succeeded')).length > 1)
    broken.push('a success is recorded once')
  return broken
}

/** Who has the row. */
function runs(row: LeftDelivery, done: readonly Did[]): string[] {
  const place = Number(row.place)
  const claimed = done.filter((session) => session.claimed?.includes(place)).length
  const failed = done.filter((session) => session.failed === place).length
  const released = done.filter((session) => session.released?.includes(place)).length
  const broken: string[] = []
  if (claimed > 1 + released) broken.push('no two runs have one row')
  if (claimed > 0 && failed > 0) broken.push('of two runs of one attempt only the owner records a failure')
  if (claimed > released && row.state !== 'in_progress' && row.state !== 'completed')
    broken.push('an attempt under way ends by its record')
  return broken
}

function confirmed({ deliveries }: Left, done: readonly Did[]): string[] {
  const places = done.flatMap(({ confirmed: place }) => (place === undefined ? [] : [String(place)]))
  const isLost = deliveries.some(({ place, state }) => places.includes(place) && state !== 'completed')
  return isLost ? ['what a receiver confirmed stays confirmed'] : []
}

function incidents({ isDeleted, deliveries, incidents: found }: Left): string[] {
  const hasOpen = found.some(({ isOpen }) => isOpen)
  const attempted = deliveries.filter(({ attempts, isTest }) => attempts > 0 && !isTest)
  const unresolved = attempted.filter(({ state }) => ['waiting', 'failed', 'in_progress'].includes(state))
  const isStopped = attempted.some(({ state }) => state === 'stopped')
  if (isDeleted) return hasOpen ? ['a deleted webhook has no open incident'] : []
  // A retry of what was stopped opens none before it fails.
  if (unresolved.some(({ isRequested }) => !isRequested) && !hasOpen)
    return ['a delivery that waits or has failed has an open incident']
  // Purged deliveries close no incident.
  if (hasOpen && deliveries.length > 0 && unresolved.length === 0 && !isStopped)
    return ['an open incident has something unresolved, or stopped under it']
  return []
}

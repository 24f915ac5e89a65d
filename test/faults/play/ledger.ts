import type { AttemptFacts, Fault, FaultKind, LedgerPost } from './record.ts'

/** A POST with the number of the attempt that it was made for. */
export type NumberedPost = LedgerPost & {
  number: number
  /** The attempt was recorded with the answer of this very POST; when that was committed, null for one that was not. */
  recordedAt: number | null
  /** Of a POST for an attempt that had a POST before: that one, and the fault that it is charged to, if there is one. */
  repeats: { post: LedgerPost; chargedTo: Fault | null } | null
}

/** Of a POST that was not answered, the sender's times may differ by that from the receiver's, in ms. */
const TOLERANCE_MS = 500
/** A healthy process on a busy machine has recorded an outcome that long after its POST. */
export const RECORDED_WITHIN_MS = 3_000
/** And has sent a POST that long after it decided to. */
const SENT_WITHIN_MS = 1_000
/** A receiver without a processor has read a POST that long after its sender's time was over. */
const READ_WITHIN_MS = 30_000

/** Faults after which an attempt may be made again although its POST arrived. */
const CAUSES_REPEAT: readonly FaultKind[] = [
  'kill',
  'pause',
  'pauses',
  'database_silence',
  'database_cut',
  'database_crash',
  'disk_full',
  'connections_exhausted',
  'busy_machine',
]

/** Faults that hold up a process in the middle of what it does. */
export const HOLDS_UP: readonly FaultKind[] = ['pause', 'pauses', 'busy_machine']

/**
 * How far the instants of rows may be from the true ones, and from each other, in ms: as far as PostgreSQL's clock was
 * stepped in the play. A process knows of a step some seconds later.
 */
export function rowErrorMs(faults: readonly Fault[]): number {
  const steps = faults.filter(({ kind }) => kind === 'database_clock_step')
  const seconds = [0, ...steps.map(({ detail }) => parseFloat(detail))]
  return 1_000 * (Math.max(...seconds) - Math.min(...seconds))
}

/** Groups by a key, in the order given. */
export function groupBy<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const group = groups.get(keyOf(one))
    if (group === undefined) groups.set(keyOf(one), [one])
    else group.push(one)
  }
  return groups
}

export const byDelivery = <T extends { deliveryId: string }>(all: readonly T[]): Map<string, T[]> =>
  groupBy(all, ({ deliveryId }) => deliveryId)

/** A fault of this process, of all, or of a server. Of a process that is not known, any. */
export function isOfProcess({ process }: Fault, name: string | null): boolean {
  return process === null || name === null || process === name
}

/** The faults of its sender that hit while a POST was in progress or its outcome not recorded yet. */
export function faultsDuring(
  post: LedgerPost & { recordedAt: number | null },
  faults: readonly Fault[],
): Fault[] {
  const from = post.arrivedAt - SENT_WITHIN_MS
  const hits = new Set<Fault>()
  let until =
    post.recordedAt === null
      ? (post.endedAt ?? post.arrivedAt) + RECORDED_WITHIN_MS
      : post.recordedAt + rowErrorMs(faults)
  for (let count = -1; count !== hits.size;) {
    count = hits.size
    for (const fault of faults)
      if (fault.to >= from && fault.from <= until && isOfProcess(fault, post.sender)) {
        hits.add(fault)
        // Recording goes on after it.
        if (post.recordedAt === null) until = Math.max(until, fault.to + RECORDED_WITHIN_MS)
      }
  }
  return [...hits]
}

/**
 * The fault that a POST is charged to which repeats another: one of the process that sent the first, while that was in
 * flight and not recorded; or, where the second is that of a run that was overtaken, one that held up its own process.
 * No two repeats are charged to one fault for the same POST, so that no fault is charged with more than were in flight.
 */
function chargeOf(first: NumberedPost, repeat: LedgerPost, faults: readonly Fault[]): Fault | null {
  const mayCharge = ({ kind, from }: Fault): boolean =>
    CAUSES_REPEAT.includes(kind) && from <= repeat.arrivedAt
  const ownOfFirst = faultsDuring(first, faults).find(mayCharge)
  if (
    ownOfFirst !== undefined &&
    (first.recordedAt === null || first.recordedAt + rowErrorMs(faults) > repeat.arrivedAt)
  )
    return ownOfFirst
  // It had claimed the attempt before the first was sent, and only then sent its POST.
  const heldUp = faults.find(
    (fault) =>
      HOLDS_UP.includes(fault.kind) &&
      isOfProcess(fault, repeat.sender) &&
      fault.from <= first.arrivedAt &&
      fault.to + RECORDED_WITHIN_MS >= repeat.arrivedAt,
  )
  return heldUp ?? null
}

/**
 * Returns for each POST of one delivery which attempt it was made for, in the order of arrival. A recorded attempt names
 * its POST by the answer's body; one without an answer is known by its time, which a receiver on a busy machine may read
 * later. A POST that no record names was made for the attempt that was next when it arrived, or again for one that was
 * recorded by then where it was held up. Without records each POST is an attempt of its own, until one was confirmed.
 */
export function numberPosts(
  posts: readonly LedgerPost[],
  attempts: readonly AttemptFacts[],
  faults: readonly Fault[],
): NumberedPost[] {
  const sorted = [...posts].sort((one, other) => one.arrivedAt - other.arrivedAt)
  const recorded = matchAttempts(sorted, attempts, faults)
  const completing = attempts.find(({ outcome }) => outcome === 'succeeded')?.number ?? Infinity
  const numbered: NumberedPost[] = []
  for (const post of sorted) {
    const own = recorded.get(post.id)
    const done = attempts.length === 0 ? endedBefore(numbered) : recordedBefore(attempts, post.arrivedAt)
    const isLate = own === undefined && done > 0 && isHeldUp(numbered, done, post, faults)
    const number = own?.number ?? (isLate ? done : Math.min(done + 1, completing))
    const one: NumberedPost = { ...post, number, recordedAt: own?.recordedAt ?? null, repeats: null }
    const first = numbered.findLast((before) => before.number === number)
    if (first !== undefined) one.repeats = { post: first, chargedTo: chargeOf(first, post, faults) }
    numbered.push(one)
  }
  return numbered
}

function recordedBefore(attempts: readonly AttemptFacts[], instant: number): number {
  return attempts.filter(({ recordedAt }) => recordedAt <= instant).length
}

/** How many attempts POSTs were made for so far; that of a confirmed one is the last. */
function endedBefore(numbered: readonly NumberedPost[]): number {
  const confirmed = numbered.find(isConfirmed)
  return confirmed === undefined ? numbered.length : confirmed.number - 1
}

function isHeldUp(
  numbered: readonly NumberedPost[],
  done: number,
  post: LedgerPost,
  faults: readonly Fault[],
): boolean {
  const first = numbered.findLast(({ number }) => number === done)
  return first !== undefined && first.sender !== post.sender && chargeOf(first, post, faults) !== null
}

function matchAttempts(
  sorted: readonly LedgerPost[],
  attempts: readonly AttemptFacts[],
  faults: readonly Fault[],
): Map<number, AttemptFacts> {
  const recorded = new Map<number, AttemptFacts>()
  for (const attempt of attempts) {
    const [, id] = /^post (\d+)$/.exec(attempt.responseBody ?? '') ?? []
    if (id !== undefined) recorded.set(Number(id), attempt)
  }
  const toleranceMs = TOLERANCE_MS + rowErrorMs(faults)
  for (const attempt of attempts) {
    if (attempt.responseBody !== null && attempt.responseBody !== '') continue
    const post = sorted.find(
      ({ id, status, arrivedAt }) =>
        status === null &&
        !recorded.has(id) &&
        arrivedAt >= attempt.startedAt - toleranceMs &&
        arrivedAt <= attempt.endedAt + toleranceMs,
    )
    const found = post ?? sorted.find((one) => !recorded.has(one.id) && isReadLate(attempt, one, faults))
    if (found !== undefined) recorded.set(found.id, attempt)
  }
  return recorded
}

/** Whether the sender's time was over when a receiver without a processor read the POST. */
export function isReadLate(
  { failureCode, endedAt }: AttemptFacts,
  { arrivedAt }: LedgerPost,
  faults: readonly Fault[],
): boolean {
  const isBusy = faults.some(
    ({ kind, from, to }) => kind === 'busy_machine' && from <= arrivedAt && to >= endedAt,
  )
  return isBusy && failureCode === 'timeout' && arrivedAt > endedAt && arrivedAt < endedAt + READ_WITHIN_MS
}

export function isConfirmed({ status }: { status: number | null }): boolean {
  return status !== null && status >= 200 && status < 300
}

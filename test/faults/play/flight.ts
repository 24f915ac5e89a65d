import type { Fault, FaultKind, LedgerPost } from './record.ts'

/** A healthy process on a busy machine has recorded an outcome that long after its POST. */
const RECORDED_WITHIN_MS = 3_000
/** And has sent a POST that long after it decided to. */
const SENT_WITHIN_MS = 1_000

/** Faults after which an attempt may be made again although its POST arrived. */
const CAUSES_REPEAT: readonly FaultKind[] = ['kill', 'pause', 'database_silence', 'database_cut']

/** The faults that hit while a POST was in progress or its outcome not recorded yet. */
export function faultsDuring(post: LedgerPost, faults: readonly Fault[]): Fault[] {
  const from = post.arrivedAt - SENT_WITHIN_MS
  const hits = new Set<Fault>()
  let until = (post.endedAt ?? post.arrivedAt) + RECORDED_WITHIN_MS
  for (let count = -1; count !== hits.size;) {
    count = hits.size
    for (const fault of faults)
      if (fault.to >= from && fault.from <= until) {
        hits.add(fault)
        // Recording goes on after it.
        until = Math.max(until, fault.to + RECORDED_WITHIN_MS)
      }
  }
  return [...hits]
}

/** Whether a fault before `repeatedAt` explains that the attempt of this POST was made again at that instant. */
export function mayBeRepeated(post: LedgerPost, repeatedAt: number, faults: readonly Fault[]): boolean {
  return faultsDuring(post, faults).some(
    ({ kind, from }) => CAUSES_REPEAT.includes(kind) && from <= repeatedAt,
  )
}

import type { Fault, FaultKind, PlayRecord, Violation } from '../record.ts'
import { SHUTDOWN_GRACE_MS } from '../plan.ts'

const RULE = 'the victim gets its events in time'

/**
 * What a fault explains. `boundMs`: within so long of its end, or of its begin where `others` can take over, what it held
 * goes on, as docs/production.md promises. `settleMs`: what is accepted so long after its end is as good as undisturbed.
 */
type Bound = { boundMs: number; settleMs: number; others: boolean }

const GRACE_MS = SHUTDOWN_GRACE_MS + 5_000

/** Kinds that are missing here explain nothing: clocks of processes that step, and webhooks of others that are locked. */
const BOUNDS: Partial<Record<FaultKind, Bound>> = {
  kill: { boundMs: 30_000, settleMs: 1_000, others: true },
  terminate: { boundMs: GRACE_MS, settleMs: 1_000, others: true },
  pause: { boundMs: 30_000, settleMs: 1_000, others: false },
  pauses: { boundMs: 30_000, settleMs: 1_000, others: false },
  database_silence: { boundMs: 40_000, settleMs: 10_000, others: false },
  database_cut: { boundMs: 40_000, settleMs: 2_000, others: false },
  database_crash: { boundMs: 30_000, settleMs: 10_000, others: false },
  database_clock_step: { boundMs: 5_000, settleMs: 5_000, others: false },
  disk_full: { boundMs: 30_000, settleMs: 10_000, others: false },
  connections_exhausted: { boundMs: 30_000, settleMs: 10_000, others: false },
  sql_error: { boundMs: 30_000, settleMs: 5_000, others: false },
  temporal_silence: { boundMs: 60_000, settleMs: 30_000, others: false },
  temporal_cut: { boundMs: 30_000, settleMs: 5_000, others: false },
  temporal_restart: { boundMs: 30_000, settleMs: 10_000, others: false },
  temporal_wipe: { boundMs: 30_000, settleMs: 30_000, others: false },
  busy_machine: { boundMs: 30_000, settleMs: 10_000, others: false },
}

/** Once it has accepted an event, a process with the API alone has no part in its first attempt. */
const isOfApi = ({ process }: Fault): boolean => process?.startsWith('api') === true

/** What was under way so long before a fault may have been held by its process, in ms. */
const HELD_MS = 2_000

/** Temporal's queue explains no longer wait, and holds nothing for longer. */
const MAX_QUEUED_MS = 20_000

/** Each event of the victim that was accepted reaches it within `victimMs`, or within the bound of a fault that held it. */
export function checkLateness(record: PlayRecord): Violation[] {
  return latenesses(record)
    .filter(({ lateMs, boundMs }) => lateMs > boundMs)
    .map(({ deliveryId, lateMs, boundMs, arrivedAt }) => ({
      rule: RULE,
      deliveryId,
      detail: `delivery ${deliveryId} came ${arrivedAt === null ? 'not within' : 'after'} ${Math.round(lateMs)} ms, of ${Math.round(boundMs)}`,
    }))
}

type Lateness = {
  deliveryId: string
  arrivedAt: number | null
  lateMs: number
  boundMs: number
  isUndisturbed: boolean
}

/** How late each event of the victim came, and how late it might. */
function latenesses(record: PlayRecord): Lateness[] {
  const victims = new Set(record.webhooks.filter(({ isVictim }) => isVictim).map(({ id }) => id))
  const arrivals = new Map<string, number>()
  for (const { webhookId, deliveryId, arrivedAt } of record.posts)
    if (victims.has(webhookId) && !arrivals.has(deliveryId)) arrivals.set(deliveryId, arrivedAt)
  const faults = record.faults.filter((fault) => !isOfApi(fault)).sort((one, other) => one.from - other.from)
  const queuedMs = queueOf(record)
  return record.publications.flatMap(({ tries }) => {
    const accepted = tries.find(({ status }) => status === 202)
    const delivery = accepted?.deliveries.find(({ webhookId }) => victims.has(webhookId))
    if (accepted === undefined || delivery === undefined) return []
    const arrivedAt = arrivals.get(delivery.id) ?? null
    const victimMs = record.victimMs + queuedMs(delivery.id, accepted.to, arrivedAt ?? record.endedAt)
    const boundMs = deadlineOf(accepted.to, victimMs, faults) - accepted.to
    return [
      {
        deliveryId: delivery.id,
        arrivedAt,
        boundMs,
        lateMs: (arrivedAt ?? record.endedAt) - accepted.to,
        isUndisturbed: boundMs <= victimMs,
      },
    ]
  })
}

/**
 * Returns how much later an event of the victim may come for what shared Temporal's queue with it between its acceptance
 * and its arrival: deliveries that were attempted meanwhile, or had been accepted and not attempted by then.
 */
function queueOf(record: PlayRecord): (deliveryId: string, from: number, to: number) => number {
  if (record.queuedMs === 0) return () => 0
  const firsts = new Map<string, number>()
  for (const { deliveryId, arrivedAt } of record.posts)
    if (!firsts.has(deliveryId)) firsts.set(deliveryId, arrivedAt)
  const accepted = record.publications.flatMap(({ tries }) =>
    tries.flatMap((one) =>
      one.deliveries.map(({ id }) => ({ id, at: one.to, attemptedAt: firsts.get(id) ?? Infinity })),
    ),
  )
  return (deliveryId, from, to) => {
    const sharing = new Set<string>()
    for (const post of record.posts)
      if (post.arrivedAt > from && post.arrivedAt <= to) sharing.add(post.deliveryId)
    for (const { id, at, attemptedAt } of accepted)
      if (at > from - MAX_QUEUED_MS && at <= to && attemptedAt > to) sharing.add(id)
    sharing.delete(deliveryId)
    return Math.min(record.queuedMs * sharing.size, MAX_QUEUED_MS)
  }
}

/** A fault that begins before the deadline of the one before may hold up again what that one held up. */
function deadlineOf(acceptedAt: number, victimMs: number, faults: readonly Fault[]): number {
  let deadline = acceptedAt + victimMs
  for (const { kind, from, to } of faults) {
    const bound = BOUNDS[kind]
    if (bound === undefined || from - HELD_MS > deadline) continue
    const endedAt = bound.others ? from : to
    if (endedAt + bound.settleMs >= acceptedAt) deadline = Math.max(deadline, endedAt + bound.boundMs)
  }
  return deadline
}

/** For the summary: how many events the victim got within which time. */
export function describeLateness(record: PlayRecord): string {
  const all = latenesses(record)
  const undisturbed = all.filter(({ isUndisturbed }) => isUndisturbed)
  const worst = (list: readonly Lateness[]): number =>
    Math.round(Math.max(0, ...list.map(({ lateMs }) => lateMs)))
  return `victim: ${undisturbed.length} of ${all.length} events undisturbed, at most ${worst(undisturbed)} ms late, others ${worst(all)} ms`
}

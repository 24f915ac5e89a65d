import { BEGAN_AT_MS, RUNS, WEBHOOK } from './rows.ts'

/** What a session did, and the answer that it got. Deliveries by their number. */
export type Did = {
  /** The rows that its runs were given. */
  claimed?: readonly number[]
  /** Returned by the runs that had them. */
  released?: readonly number[]
  /** Whose POST was confirmed. */
  confirmed?: number
  /** Whose failure was recorded, by its owner. */
  failed?: number
  /** Anything else that the product returned. */
  answer?: unknown
}

/** A delivery as it was left; instants in tenths of a second from the beginning. */
export type LeftDelivery = {
  place: string
  state: string
  stopReason: string | null
  attempts: number
  runs: number
  owner: string | null
  isRequested: boolean
  isAttemptRequested: boolean
  hasWorkflow: boolean
  due: number | null
  lease: number | null
  sweep: number | null
  isPaused: boolean
  isTest: boolean
  isTaken: boolean
  /** `number outcome`, in order. */
  recorded: string[]
}

type LeftIncident = { isOpen: boolean; isExhausted: boolean; isResting: boolean; isResumed: boolean }

/** The rows that a permutation left. */
export type Left = {
  isDeleted: boolean
  deliveries: LeftDelivery[]
  incidents: LeftIncident[]
}

/** What each session did, or the error that ended it. */
export type AllDid = Record<string, Did | { error: string }>

type DeliveryColumns = {
  id: string
  webhook_id: string
  state: string
  stop_reason: string | null
  attempts: number
  runs: number
  owner: string | null
  retry_requested: boolean
  attempt_requested: boolean
  workflow_started_at: string | null
  next_attempt_at: string | null
  lease_until: string | null
  sweep_at: string | null
  paused_since: string | null
  is_test: boolean
  is_taken: boolean
  recorded: string[] | null
}

export type Columns = {
  is_deleted: boolean
  deliveries: DeliveryColumns[] | null
  incidents: { closed_at: unknown; exhausted_at: unknown; resting: boolean; resumed_at: unknown }[] | null
}

/** One row: everything that is compared. */
export const READ = `SELECT
  (SELECT jsonb_agg(to_jsonb(d) || jsonb_build_object('recorded', recorded, 'is_taken', is_taken) ORDER BY d.id)
     FROM delivery d
     CROSS JOIN LATERAL (
       SELECT stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key) IS NULL AS is_taken
         FROM webhook w, event e WHERE w.id = d.webhook_id AND e.id = d.event_id) webhook
     LEFT JOIN LATERAL (
       SELECT jsonb_agg(number || ' ' || outcome ORDER BY number) AS recorded
         FROM attempt a WHERE a.delivery_id = d.id) attempts ON true) AS deliveries,
  (SELECT deleted_at IS NOT NULL FROM webhook WHERE id = '${WEBHOOK}') AS is_deleted,
  (SELECT jsonb_agg(to_jsonb(i) ORDER BY i.closed_at NULLS LAST) FROM incident i) AS incidents`

const NAMES = new Map<string, string>(Object.entries(RUNS).map(([name, id]) => [id, name]))

/** The rows as they are compared: no ids and no ticks. */
export function leftRows(columns: Columns): Left {
  const tenths = (value: string | null): number | null =>
    value === null ? null : Math.floor((Date.parse(value) - BEGAN_AT_MS) / 100)
  return {
    isDeleted: columns.is_deleted,
    deliveries: (columns.deliveries ?? []).map((row) => ({
      place: /^0{8}-0{4}-7000-8000-0{11}(\d)$/.exec(row.id)?.[1] ?? 'new',
      state: row.state,
      stopReason: row.stop_reason,
      attempts: row.attempts,
      runs: row.runs,
      owner: row.owner === null ? null : (NAMES.get(row.owner.replace(/.$/, '0')) ?? 'new'),
      isRequested: row.retry_requested,
      isAttemptRequested: row.attempt_requested,
      hasWorkflow: row.workflow_started_at !== null,
      due: tenths(row.next_attempt_at),
      lease: tenths(row.lease_until),
      sweep: tenths(row.sweep_at),
      isPaused: row.paused_since !== null,
      isTest: row.is_test,
      isTaken: row.is_taken,
      recorded: row.recorded ?? [],
    })),
    incidents: (columns.incidents ?? []).map((row) => ({
      isOpen: row.closed_at === null,
      isExhausted: row.exhausted_at !== null,
      isResting: row.resting,
      isResumed: row.resumed_at !== null,
    })),
  }
}

/** What a session did, or the error that ended it. */
export function didOf(result: PromiseSettledResult<Did>): Did | { error: string } {
  if (result.status === 'fulfilled') return result.value
  const error = result.reason as { code?: string; message?: string; driverError?: { code?: string } }
  const code = error.driverError?.code ?? error.code
  return { error: [code, error.message].filter((part) => part !== undefined).join(' ') }
}

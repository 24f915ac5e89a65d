/** Runs that own rows, or did. */
export const RUNS = {
  A: 'aaaaaaaa-0000-4000-8000-000000000000',
  B: 'bbbbbbbb-0000-4000-8000-000000000000',
  C: 'cccccccc-0000-4000-8000-000000000000',
} as const

export type RunName = keyof typeof RUNS

export const ORGANISATION = 'org_permutations'
export const EVENT_KEY = 'invoice:paid'
export const LEASE_MS = 15_000

/** The webhook of a permutation, and one that has a delivery where a step is to wait for another row. */
export const WEBHOOK = '00000000-0000-7000-8000-0000000000f0'
const OTHER_WEBHOOK = '00000000-0000-7000-8000-0000000000f1'

/** When every permutation begins, by the clock of the protocol. Old rows are old by PostgreSQL's own clock. */
export const BEGAN_AT_MS = Date.now()

const INCIDENT = '00000000-0000-7000-8000-0000000000c0'
const DAY_MS = 86_400_000

export function deliveryId(place: number): string {
  return `00000000-0000-7000-8000-00000000000${place}`
}

function eventId(place: number): string {
  return `00000000-0000-7000-8000-0000000000e${place}`
}

/** A delivery at the beginning; instants are in ms from then. */
export type Given = {
  state: 'pending' | 'in_progress' | 'waiting' | 'completed' | 'failed' | 'stopped'
  attempts?: number
  owner?: RunName
  leaseInMs?: number
  dueInMs?: number
  /** When the sweeper examines it; null: never. */
  sweepInMs?: number | null
  hasWorkflow?: boolean
  isRequested?: boolean
  stopReason?: string
  isTest?: boolean
  isOfOther?: boolean
  /** Long ago. */
  isOld?: boolean
}

/** All rows at the beginning. The first delivery is number 1. */
export type Rows = {
  deliveries: readonly Given[]
  webhook?: 'enabled' | 'disabled' | 'deleted'
  hasIncident?: boolean
}

export const pending: Given = { state: 'pending', sweepInMs: 0 }
/** By run A, in time. */
export const leased: Given = { state: 'in_progress', owner: 'A', leaseInMs: LEASE_MS, sweepInMs: LEASE_MS }
/** By run A, whose process is lost, or was paused. */
export const lost: Given = { state: 'in_progress', owner: 'A', leaseInMs: -1, sweepInMs: -1 }
export const waiting: Given = {
  state: 'waiting',
  attempts: 1,
  dueInMs: 60_000,
  sweepInMs: 75_000,
  hasWorkflow: true,
}
export const due: Given = { ...waiting, dueInMs: 0, sweepInMs: 15_000 }
export const failed: Given = { state: 'failed', attempts: 10, hasWorkflow: true }
export const stopped: Given = { state: 'stopped', stopReason: 'webhook_disabled' }

type Row = Record<string, unknown>

/** What is inserted into each table. */
export function tablesOf({ deliveries, webhook = 'enabled', hasIncident }: Rows): Record<string, Row[]> {
  const isUnresolved = deliveries.some(
    ({ state, attempts = 0 }) => attempts > 0 && ['waiting', 'failed', 'in_progress'].includes(state),
  )
  const incident = { id: INCIDENT, organisation_id: ORGANISATION, webhook_id: WEBHOOK, opened_at: at(0) }
  return {
    webhook: [webhookRow(WEBHOOK, webhook), webhookRow(OTHER_WEBHOOK, 'enabled')],
    event: deliveries.map((_, index) => ({
      id: eventId(index + 1),
      organisation_id: ORGANISATION,
      sequence: -(index + 1),
      key: EVENT_KEY,
      body: '\\x7b7d',
      emitted_at: at(0),
      trace_id: 'trace',
      is_test: false,
      created_at: at(0),
    })),
    delivery: deliveries.map((given, index) => deliveryRow(given, index + 1)),
    attempt: deliveries.flatMap((given, index) => attemptRows(given, index + 1)),
    incident: (hasIncident ?? isUnresolved) ? [{ ...incident, resting: false }] : [],
  }
}

function at(inMs: number): string {
  return new Date(BEGAN_AT_MS + inMs).toISOString()
}

function webhookRow(id: string, state: NonNullable<Rows['webhook']>): Row {
  return {
    id,
    organisation_id: ORGANISATION,
    url: 'https://receiver.example.com/',
    description: '',
    subscribed_event_keys: [EVENT_KEY, 'customer:created'],
    enabled: state === 'enabled',
    secret: state === 'deleted' ? null : 'sealed',
    created_at: at(0),
    updated_at: at(0),
    deleted_at: state === 'deleted' ? at(0) : null,
  }
}

function deliveryRow(given: Given, place: number): Row {
  const { state, attempts = 0, owner, leaseInMs, dueInMs = 0, sweepInMs = null } = given
  const isOpen = state === 'pending' || state === 'in_progress' || state === 'waiting'
  return {
    id: deliveryId(place),
    event_id: eventId(place),
    webhook_id: given.isOfOther === true ? OTHER_WEBHOOK : WEBHOOK,
    organisation_id: ORGANISATION,
    state,
    attempts,
    runs: state === 'in_progress' ? 1 : 0,
    owner: owner === undefined ? null : RUNS[owner],
    lease_until: leaseInMs === undefined ? null : at(leaseInMs),
    next_attempt_at: isOpen && attempts > 0 ? at(dueInMs) : null,
    sweep_at: sweepInMs === null ? null : at(sweepInMs),
    workflow_started_at: given.hasWorkflow === true ? at(0) : null,
    retry_requested: given.isRequested ?? false,
    attempt_requested: false,
    stop_reason: given.stopReason ?? null,
    is_test: given.isTest ?? false,
    is_erased: false,
    created_at: at(0),
    completed_at: isOpen ? null : at(given.isOld === true ? -100 * DAY_MS : 0),
  }
}

function attemptRows({ state, attempts = 0, isTest }: Given, place: number): Row[] {
  return Array.from({ length: attempts }, (_, index) => ({
    delivery_id: deliveryId(place),
    number: index + 1,
    webhook_id: isTest === true ? null : WEBHOOK,
    trigger: 'schedule',
    url: 'https://receiver.example.com/',
    started_at: at(0),
    duration_ms: 1,
    outcome: state === 'completed' && index + 1 === attempts ? 'succeeded' : 'failed',
    response_truncated: false,
  }))
}

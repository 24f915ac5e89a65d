import { byDelivery, HOLDS_UP, isOfProcess, rowErrorMs } from '../ledger.ts'
import type { Fault, FaultKind, PlayRecord, UserAction, Violation } from '../record.ts'

const ANSWERED = 'every request has an answer'
const RETRIED = 'no retry that was accepted is forgotten'
const STREAMED = 'a stream misses nothing'

/** Statuses that a sound process gives to a valid request, whatever else is done meanwhile. */
const EXPECTED = [200, 201, 202, 204, 409]
/** And where its webhook, delivery or organisation may be gone. */
const EXPECTED_WHEN_GONE = [401, 404]

/** Faults that end or hold up a process, so that it answers nothing. */
const STOPS: readonly FaultKind[] = ['kill', 'terminate', ...HOLDS_UP]
/** Faults in which a process answers 503. */
const REFUSES: readonly FaultKind[] = [
  ...STOPS,
  'database_silence',
  'database_cut',
  'database_crash',
  'disk_full',
  'connections_exhausted',
  'sql_error',
  'locked_webhooks',
]
/** The SQLSTATE of an error of PostgreSQL's own, which is answered 500. */
const INTERNAL_ERROR = 'XX000'
/** A connection that was lost is answered 503 within ten seconds. */
const REFUSED_WITHIN_MS = 12_000

/** What a request waits for a webhook that is locked, or until a paused process has caught up. */
const STOPPED_WITHIN_MS = 1_000

/** A retry leads to a POST within that time, where no fault is in the way; in ms. */
const POSTED_WITHIN_MS = 60_000

/** Each request is answered; each 500, 503 or missing answer is charged to a fault of the process that was asked. */
export function checkRequests(record: PlayRecord): Violation[] {
  const { publications, actions, faults } = record
  const isInTemporal = ({ kind }: UserAction): boolean =>
    ['signal', 'signal_retry', 'cancel', 'terminate_workflow', 'purge'].includes(kind)
  const requests = [
    ...publications.flatMap(({ dataId, organisationId, tries }) =>
      tries.map((one) => ({ ...one, organisationId, webhookId: null, what: `publish ${dataId}` })),
    ),
    ...actions.filter((action) => !isInTemporal(action)).map((action) => ({ ...action, what: action.kind })),
  ]
  return requests.flatMap((request): Violation[] => {
    const { status, from, to, what, process } = request
    if (EXPECTED.includes(status) || (EXPECTED_WHEN_GONE.includes(status) && mayBeGone(record, request)))
      return []
    const outcome = status === 0 ? `no answer within ${Math.round(to - from)} ms` : `was answered ${status}`
    if (status === 0 && process === null) return []
    const hits = (kinds: readonly FaultKind[], withinMs: number): Fault[] =>
      faults.filter(
        (fault) =>
          kinds.includes(fault.kind) &&
          isOfProcess(fault, process) &&
          fault.from <= to &&
          fault.to + withinMs >= from,
      )
    const isOfPostgres = ({ detail }: Fault): boolean => detail.startsWith(INTERNAL_ERROR)
    if (status === 0 && hits(STOPS, STOPPED_WITHIN_MS).length > 0) return []
    if (status === 503 && hits(REFUSES, REFUSED_WITHIN_MS).length > 0) return []
    if (status === 500 && hits(['sql_error'], 0).some(isOfPostgres)) return []
    return [{ rule: ANSWERED, deliveryId: null, detail: `${what} of ${process}: ${outcome}` }]
  })
}

/** Its organisation was erased by then, or its webhook, or the one that its delivery is of, may be deleted. */
function mayBeGone(
  { actions }: PlayRecord,
  request: { organisationId: string; webhookId: string | null; to: number },
): boolean {
  return actions.some(
    ({ kind, organisationId, webhookId, change, from }) =>
      from <= request.to &&
      organisationId === request.organisationId &&
      (kind === 'erase' || (change?.isDeleted === true && webhookId === request.webhookId)),
  )
}

/** An accepted retry leads to a POST, unless the attempt in progress succeeded or the delivery was stopped. */
export function checkRetries(record: PlayRecord): Violation[] {
  const { actions, posts, facts, faults, webhooks } = record
  if (facts === null) return []
  const errorMs = rowErrorMs(faults)
  const ledger = byDelivery(posts)
  const attempts = byDelivery(facts.attempts)
  const deliveries = new Map(facts.deliveries.map((delivery) => [delivery.id, delivery]))
  const hanging = new Set(webhooks.filter(({ hangsAtEnd }) => hangsAtEnd).map(({ id }) => id))
  return actions
    .filter(({ kind, status }) => kind === 'retry' && status === 202)
    .flatMap((retry): Violation[] => {
      const { deliveryId, webhookId, from } = retry
      const delivery = deliveries.get(deliveryId ?? '')
      if (delivery === undefined || hanging.has(webhookId ?? '') || wasStopped(actions, retry)) return []
      const until = extended(from + POSTED_WITHIN_MS, from, faults)
      const isMade = (at: number): boolean => at >= from - errorMs && at <= until + errorMs
      const posted = (ledger.get(delivery.id) ?? []).some(({ arrivedAt }) => isMade(arrivedAt))
      // An endpoint that refuses connections sees no POST.
      const attempted = (attempts.get(delivery.id) ?? []).some(({ startedAt }) => isMade(startedAt))
      const { state, completedAt } = delivery
      const isDisturbedToTheEnd = until === Infinity
      const isCompleted = state === 'completed' && completedAt !== null && completedAt <= until
      if (posted || attempted || isCompleted || isDisturbedToTheEnd) return []
      return [
        { rule: RETRIED, deliveryId, detail: `no POST within ${Math.round(until - from)} ms of the retry` },
      ]
    })
}

/** By the time of the last fault in progress, and a while after it. */
function extended(until: number, from: number, faults: readonly Fault[]): number {
  return faults
    .filter((fault) => fault.to >= from)
    .sort((one, other) => one.from - other.from)
    .reduce((end, fault) => (fault.from <= end ? Math.max(end, fault.to + POSTED_WITHIN_MS) : end), until)
}

function wasStopped(actions: readonly UserAction[], { webhookId, deliveryId, from }: UserAction): boolean {
  return actions.some(
    (action) =>
      action.to >= from &&
      ((action.kind === 'discard' && action.deliveryId === deliveryId) ||
        ((action.kind === 'change' || action.kind === 'discard_failed') && action.webhookId === webhookId)),
  )
}

/** What was accepted later may not have come when the clients left, in ms. */
const STREAMED_WITHIN_MS = 5_000

/**
 * From its first position on a client has each accepted event of its organisation once, over all connections, or was told
 * of a gap; and a gap is charged to a loss of data, of which a play has none.
 */
export function checkStreams({ streams, publications, actions, endedAt }: PlayRecord): Violation[] {
  const violation = (detail: string): Violation => ({ rule: STREAMED, deliveryId: null, detail })
  return streams.flatMap(({ organisationId, since, received, gaps }) => {
    const violations = gaps.map(({ process }) =>
      violation(`${process} told a client of a gap, and nothing was lost`),
    )
    const isErased = actions.some(
      (action) => action.kind === 'erase' && action.organisationId === organisationId,
    )
    if (isErased) return []
    const ids = new Set(received)
    if (ids.size < received.length)
      violations.push(
        violation(`${received.length - ids.size} events came more than once to ${organisationId}`),
      )
    for (const publication of publications) {
      if (publication.organisationId !== organisationId || since === null) continue
      // Each later try is answered with the event of the first one, whose answer may have been lost.
      const isLater = publication.tries.every(({ from }) => from > since)
      for (const { status, to, eventId } of publication.tries)
        if (status === 202 && isLater && to < endedAt - STREAMED_WITHIN_MS && !ids.has(eventId ?? ''))
          violations.push(violation(`event ${eventId} of ${publication.dataId} did not come`))
    }
    return violations
  })
}

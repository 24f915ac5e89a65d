import type { AttemptFacts, DeliveryFacts, IncidentFacts, PlayRecord, UserAction } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'incidents agree with attempts'

/** Between the end of a POST and its record, where no fault is in the way, in ms. */
const RECORDED_WITHIN_MS = 3_000
/** What may close an incident besides a success. */
const CLOSES: readonly UserAction['kind'][] = ['discard', 'discard_failed']
/** How far the sender's instants may be from those of the database. */
const TOLERANCE_MS = 500

/**
 * An incident is opened by a failed attempt, every failed attempt falls into one, no two are open at once, and one is
 * closed only by a success or a discard that leaves nothing unresolved.
 */
export function checkIncidents(record: PlayRecord): Violation[] {
  return record.webhooks.flatMap(({ id, name }) => {
    const incidents = record.facts.incidents
      .filter(({ webhookId }) => webhookId === id)
      .sort((one, other) => one.openedAt - other.openedAt)
    const failures = record.facts.attempts.filter(
      ({ webhookId, outcome }) => webhookId === id && outcome === 'failed',
    )
    const problems = [
      ...overlaps(incidents),
      ...incidents.flatMap((incident) => openedByNothing(incident, failures)),
      ...failures
        .filter((failure) => !endedWhileOff(record, failure))
        .flatMap((failure) => outsideOfAll(failure, incidents)),
      ...incidents.flatMap((incident) => closedWrongly(record, incident)),
      ...incidents.flatMap((incident) => exhaustedByNothing(incident, failures)),
    ]
    return problems.map(({ deliveryId, detail }) => ({
      rule: RULE,
      deliveryId,
      detail: `"${name}": ${detail}`,
    }))
  })
}

type Problem = { deliveryId: string | null; detail: string }

function overlaps(incidents: readonly IncidentFacts[]): Problem[] {
  return incidents.flatMap((incident, index) => {
    const next = incidents[index + 1]
    if (next === undefined || (incident.closedAt !== null && incident.closedAt <= next.openedAt)) return []
    return [{ deliveryId: null, detail: `incidents ${incident.id} and ${next.id} were open at once` }]
  })
}

function openedByNothing({ id, openedAt }: IncidentFacts, failures: readonly AttemptFacts[]): Problem[] {
  if (failures.some(({ endedAt }) => endedAt <= openedAt + TOLERANCE_MS)) return []
  return [{ deliveryId: null, detail: `incident ${id} was opened before any failure` }]
}

/** An attempt that was in progress at a switch-off ends stopped, and opens nothing. */
function endedWhileOff({ actions }: PlayRecord, { webhookId, endedAt }: AttemptFacts): boolean {
  const switches = actions.filter((action) => action.webhookId === webhookId)
  return switches.some(({ kind, from, to: offTo }) => {
    if (kind !== 'switch_off' || from > endedAt + RECORDED_WITHIN_MS) return false
    const on = switches.find((one) => one.kind === 'switch_on' && one.status === 200 && one.from >= offTo)
    return on === undefined || on.to >= endedAt - TOLERANCE_MS
  })
}

function outsideOfAll(
  { deliveryId, number, endedAt }: AttemptFacts,
  incidents: readonly IncidentFacts[],
): Problem[] {
  // Recorded at its end at the earliest, so by an incident that was not closed before.
  if (incidents.some(({ closedAt }) => closedAt === null || closedAt >= endedAt - TOLERANCE_MS)) return []
  return [{ deliveryId, detail: `the failed attempt ${number} is in no incident` }]
}

function exhaustedByNothing(
  { id, exhaustedAt }: IncidentFacts,
  failures: readonly AttemptFacts[],
): Problem[] {
  if (exhaustedAt === null) return []
  if (failures.some(({ number, endedAt }) => number >= 10 && endedAt <= exhaustedAt + TOLERANCE_MS)) return []
  return [{ deliveryId: null, detail: `incident ${id} is exhausted, but no delivery used up its attempts` }]
}

function closedWrongly(record: PlayRecord, incident: IncidentFacts): Problem[] {
  const { id, webhookId, openedAt, closedAt } = incident
  if (closedAt === null) return [{ deliveryId: null, detail: `incident ${id} is still open at the end` }]
  const deliveries = record.facts.deliveries.filter((delivery) => delivery.webhookId === webhookId)
  const problems: Problem[] = []
  if (!isClosedBySuccess(deliveries, closedAt) && !isClosedByDiscard(record, webhookId, closedAt))
    problems.push({
      deliveryId: null,
      detail: `incident ${id} was closed by neither a success nor a discard`,
    })
  for (const delivery of deliveries)
    if (isUnresolvedAt(record, delivery, { openedAt, closedAt }))
      problems.push({
        deliveryId: delivery.id,
        detail: `incident ${id} was closed while this one was unresolved`,
      })
  return problems
}

function isClosedBySuccess(deliveries: readonly DeliveryFacts[], closedAt: number): boolean {
  return deliveries.some(
    ({ state, completedAt }) =>
      state === 'completed' && completedAt !== null && Math.abs(completedAt - closedAt) <= TOLERANCE_MS,
  )
}

function isClosedByDiscard({ actions }: PlayRecord, webhookId: string, closedAt: number): boolean {
  return actions.some(
    ({ kind, webhookId: of, from, to }) =>
      CLOSES.includes(kind) &&
      of === webhookId &&
      from <= closedAt + TOLERANCE_MS &&
      to >= closedAt - TOLERANCE_MS,
  )
}

/** It had certainly failed by then, was completed later, and no member had stopped it meanwhile. */
function isUnresolvedAt(
  { actions, facts }: PlayRecord,
  { id, webhookId, state, completedAt }: DeliveryFacts,
  { openedAt, closedAt }: { openedAt: number; closedAt: number },
): boolean {
  if (state !== 'completed' || completedAt === null || completedAt <= closedAt + TOLERANCE_MS) return false
  const wasStopped = actions.some(({ kind, ...action }) => {
    if (action.from > closedAt + TOLERANCE_MS) return false
    if (kind === 'discard') return action.deliveryId === id
    return (kind === 'switch_off' || kind === 'discard_failed') && action.webhookId === webhookId
  })
  if (wasStopped) return false
  // A later attempt is proof that the one before was recorded.
  const own = facts.attempts.filter(({ deliveryId }) => deliveryId === id)
  return own.some(
    ({ number, endedAt, outcome }) =>
      outcome === 'failed' &&
      endedAt + RECORDED_WITHIN_MS < closedAt &&
      endedAt > openedAt - TOLERANCE_MS &&
      own.some((next) => next.number === number + 1 && next.startedAt < closedAt - TOLERANCE_MS),
  )
}

import { groupBy, isConfirmed, rowErrorMs } from '../ledger.ts'
import type {
  AttemptFacts,
  DeliveryFacts,
  Facts,
  IncidentFacts,
  PlayRecord,
  UserAction,
  Violation,
} from '../record.ts'
import { effectOf } from '../webhook-history.ts'

const RULE = 'incidents agree with attempts'

/** What may close an incident besides a success. */
const CLOSES: readonly UserAction['kind'][] = ['discard', 'discard_failed']
/** How far the sender's instants may be from those of the database. */
const TOLERANCE_MS = 500

/**
 * An incident is opened by a failed attempt, every failed attempt falls into one, no two are open at once, and one is
 * closed only by a success, a discard or the deletion of the webhook that leaves nothing unresolved.
 */
export function checkIncidents(record: PlayRecord): Violation[] {
  const { facts } = record
  if (facts === null) return []
  const of = <T extends { webhookId: string }>(all: T[]): Map<string, T[]> =>
    groupBy(all, ({ webhookId }) => webhookId)
  const testIds = new Set(facts.deliveries.filter(({ isTest }) => isTest).map(({ id }) => id))
  const [allIncidents, allAttempts, allDeliveries, allActions] = [
    of(facts.incidents),
    of(facts.attempts.filter(({ deliveryId }) => !testIds.has(deliveryId))),
    of(facts.deliveries.filter(({ isTest }) => !isTest)),
    groupBy(record.actions, ({ webhookId }) => webhookId ?? ''),
  ]
  // A success that is recorded late takes the place of the failure of a repeated POST.
  const succeededIds = new Set(
    facts.attempts.filter(({ outcome }) => outcome === 'succeeded').map(({ deliveryId }) => deliveryId),
  )
  const replaced = (webhookId: string): { endedAt: number }[] =>
    record.posts.flatMap((post) => {
      const { deliveryId, endedAt } = post
      const isReplaced = post.webhookId === webhookId && succeededIds.has(deliveryId) && !isConfirmed(post)
      return isReplaced && endedAt !== null ? [{ endedAt }] : []
    })
  const errorMs = rowErrorMs(record.faults)
  const erasures = record.actions.filter(({ kind }) => kind === 'erase')
  return record.webhooks.flatMap(({ id, name, organisationId }) => {
    const incidents = (allIncidents.get(id) ?? []).sort((one, other) => one.openedAt - other.openedAt)
    const attempts = allAttempts.get(id) ?? []
    const failures = attempts.filter(({ outcome }) => outcome === 'failed')
    const played: Played = {
      toleranceMs: TOLERANCE_MS + errorMs,
      deliveries: allDeliveries.get(id) ?? [],
      attempts: groupBy(attempts, ({ deliveryId }) => deliveryId),
      actions: [
        ...(allActions.get(id) ?? []),
        ...erasures.filter((erasure) => erasure.organisationId === organisationId),
      ],
    }
    const problems = [
      ...overlaps(incidents, errorMs),
      ...incidents.flatMap((incident) => openedByNothing(played, incident, [...failures, ...replaced(id)])),
      ...failures
        .filter((failure) => !endedWhileOff(played, failure))
        .flatMap((failure) => outsideOfAll(played, failure, incidents)),
      ...incidents.flatMap((incident) => closedWrongly(played, incident)),
      ...incidents.flatMap((incident) => exhaustedByNothing(played, incident, failures)),
    ]
    return problems.map(({ deliveryId, detail }) => ({
      rule: RULE,
      deliveryId,
      detail: `"${name}": ${detail}`,
    }))
  })
}

/** What there is of one webhook. */
type Played = {
  /** How far the instants of rows may be from those of others. */
  toleranceMs: number
  deliveries: DeliveryFacts[]
  attempts: Map<string, Facts['attempts']>
  actions: UserAction[]
}

type Problem = { deliveryId: string | null; detail: string }

function overlaps(incidents: readonly IncidentFacts[], errorMs: number): Problem[] {
  return incidents.flatMap((incident, index) => {
    const next = incidents[index + 1]
    if (next === undefined) return []
    if (incident.closedAt !== null && incident.closedAt <= next.openedAt + errorMs) return []
    return [{ deliveryId: null, detail: `incidents ${incident.id} and ${next.id} were open at once` }]
  })
}

function openedByNothing(
  { toleranceMs }: Played,
  { id, openedAt }: IncidentFacts,
  failures: readonly { endedAt: number }[],
): Problem[] {
  if (failures.some(({ endedAt }) => endedAt <= openedAt + toleranceMs)) return []
  return [{ deliveryId: null, detail: `incident ${id} was opened before any failure` }]
}

/** An attempt in progress at a switch-off, a narrowing, a deletion or an erasure ends stopped, and opens nothing. */
function endedWhileOff({ actions, toleranceMs }: Played, { recordedAt }: AttemptFacts): boolean {
  return actions.some((change) => {
    if (!reduces(change) || change.from > recordedAt + toleranceMs) return false
    const widened = actions.find(
      (one) => !reduces(one) && one.status === 200 && one.from >= change.to && isOfSame(one, change),
    )
    return widened === undefined || widened.to >= recordedAt - toleranceMs
  })
}

export function reduces(action: UserAction): boolean {
  const { enabled, isDeleted, subscribedEventKeys: keys } = effectOf(action)
  return enabled === false || isDeleted === true || (keys?.length === 1 && keys[0] !== '*')
}

function isOfSame(one: UserAction, other: UserAction): boolean {
  return Object.keys(effectOf(one)).join() === Object.keys(effectOf(other)).join()
}

function outsideOfAll(
  { toleranceMs }: Played,
  { deliveryId, number, recordedAt }: AttemptFacts,
  incidents: readonly IncidentFacts[],
): Problem[] {
  const isIn = ({ openedAt, closedAt }: IncidentFacts): boolean =>
    openedAt <= recordedAt + toleranceMs && (closedAt === null || closedAt >= recordedAt - toleranceMs)
  if (incidents.some(isIn)) return []
  return [{ deliveryId, detail: `the failed attempt ${number} is in no incident` }]
}

function exhaustedByNothing(
  { toleranceMs }: Played,
  { id, exhaustedAt }: IncidentFacts,
  failures: readonly AttemptFacts[],
): Problem[] {
  if (exhaustedAt === null) return []
  if (failures.some(({ number, endedAt }) => number >= 10 && endedAt <= exhaustedAt + toleranceMs)) return []
  return [{ deliveryId: null, detail: `incident ${id} is exhausted, but no delivery used up its attempts` }]
}

function closedWrongly(played: Played, incident: IncidentFacts): Problem[] {
  const { id, openedAt, closedAt } = incident
  const { deliveries } = played
  if (closedAt === null) {
    const isUnresolved = deliveries.some(
      ({ state, attempts }) =>
        state === 'waiting' || state === 'failed' || (state === 'in_progress' && attempts > 0),
    )
    // Stopped deliveries do not close it: switching off and on buys no new notifications.
    if (isUnresolved || deliveries.some(({ state }) => state === 'stopped' || state === 'in_progress'))
      return []
    return [{ deliveryId: null, detail: `incident ${id} is still open, and nothing waits or has failed` }]
  }
  const problems: Problem[] = []
  if (!isClosedBySuccess(played, closedAt) && !isClosedByMember(played, closedAt))
    problems.push({
      deliveryId: null,
      detail: `incident ${id} was closed by neither a success nor a member`,
    })
  for (const delivery of deliveries)
    if (isUnresolvedAt(played, delivery, { openedAt, closedAt }))
      problems.push({
        deliveryId: delivery.id,
        detail: `incident ${id} was closed while this one was unresolved`,
      })
  return problems
}

/** In the transaction that recorded a success: after its first statement, and before its commit. */
function isClosedBySuccess({ deliveries, attempts, toleranceMs }: Played, closedAt: number): boolean {
  return deliveries.some(({ id, completedAt }) => {
    const success = attempts.get(id)?.find(({ outcome }) => outcome === 'succeeded')
    if (success === undefined || completedAt === null) return false
    return completedAt - toleranceMs <= closedAt && closedAt <= success.recordedAt + toleranceMs
  })
}

function isClosedByMember({ actions, toleranceMs }: Played, closedAt: number): boolean {
  return actions.some(
    (action) =>
      (CLOSES.includes(action.kind) || effectOf(action).isDeleted === true) &&
      action.from <= closedAt + toleranceMs &&
      action.to >= closedAt - toleranceMs,
  )
}

/** It had certainly failed by then, was completed later, and no member had stopped it meanwhile. */
function isUnresolvedAt(
  { actions, attempts, toleranceMs }: Played,
  { id, state, completedAt }: DeliveryFacts,
  { openedAt, closedAt }: { openedAt: number; closedAt: number },
): boolean {
  if (state !== 'completed' || completedAt === null || completedAt <= closedAt + toleranceMs) return false
  const wasStopped = actions.some((action) => {
    if (action.from > closedAt + toleranceMs) return false
    if (action.kind === 'discard') return action.deliveryId === id
    return action.kind === 'discard_failed' || reduces(action)
  })
  if (wasStopped) return false
  return (attempts.get(id) ?? []).some(
    ({ recordedAt, outcome }) =>
      outcome === 'failed' && recordedAt < closedAt - toleranceMs && recordedAt > openedAt - toleranceMs,
  )
}

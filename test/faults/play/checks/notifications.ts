import { groupBy, rowErrorMs } from '../ledger.ts'
import type { FaultKind, IncidentFacts, NotificationFacts, PlayRecord, Violation } from '../record.ts'
import { reduces } from './incidents.ts'

const RULE = 'at most two notifications of an incident to one recipient'
const TOLERANCE_MS = 1_000
/** What a notification may take beyond its time, in ms. */
const NOTIFIED_WITHIN_MS = 30_000

/** Faults of a process that leave it unknown whether a message was accepted. */
const LOSES_OUTCOME: readonly FaultKind[] = ['kill', 'terminate', 'pause', 'pauses']
/** A message is sent that soon after its claim; time limits of the mail server included, in ms. */
const SENT_WITHIN_MS = 30_000
/** Messages that one process sends at once. */
const MAX_IN_FLIGHT = 4

/** Each recipient gets each kind once at most, by one mail at most, and none before its time. */
export function checkNotifications(record: PlayRecord): Violation[] {
  const { facts } = record
  if (facts === null) return []
  const { notifications } = facts
  const problems: string[] = []
  const seen = new Set<string>()
  for (const { incidentId, kind, channel, recipient } of notifications) {
    const key = `${incidentId}, kind ${kind}, to ${recipient} by ${channel}`
    if (seen.has(key) || (kind !== 1 && kind !== 2)) problems.push(`${key}: more than once`)
    seen.add(key)
  }
  const mails = groupBy(record.mails, ({ id }) => id)
  const incidents = new Map(facts.incidents.map((incident) => [incident.id, incident]))
  for (const notification of notifications) {
    const { id, recipient, incidentId } = notification
    const sent = (mails.get(id) ?? []).filter((mail) => mail.recipient === recipient).length
    problems.push(...problemsOf(record, notification, incidents.get(incidentId), sent))
  }
  problems.push(...unchargedLosses(record, notifications))
  const notified = new Set(notifications.filter(({ kind }) => kind === 1).map(({ incidentId }) => incidentId))
  for (const incident of facts.incidents)
    if (!notified.has(incident.id) && isOverdue(record, incident))
      problems.push(`incident ${incident.id} had no notification 1`)
  const rows = new Map(notifications.map((row) => [row.id, row]))
  const hasErasure = record.actions.some(({ kind }) => kind === 'erase')
  for (const { id, recipient } of record.mails)
    if (!hasErasure && rows.get(id)?.recipient !== recipient)
      problems.push(`a mail to ${recipient} belongs to no notification`)
  return problems.map((detail) => ({ rule: RULE, deliveryId: null, detail }))
}

/** Each message of an unknown outcome is charged to one fault, and no fault with more than were in flight there. */
function unchargedLosses(
  { faults, endedAt }: PlayRecord,
  notifications: readonly NotificationFacts[],
): string[] {
  const charged = new Map<object, number>()
  const errorMs = rowErrorMs(faults)
  return notifications
    .filter(({ state }) => state === 'unknown' || state === 'sending')
    .flatMap(({ id, state, claimedAt }) => {
      const fault = faults.find(
        (one) =>
          LOSES_OUTCOME.includes(one.kind) &&
          claimedAt !== null &&
          one.from >= claimedAt - TOLERANCE_MS - errorMs &&
          one.from <= claimedAt + SENT_WITHIN_MS + errorMs &&
          (charged.get(one) ?? 0) < MAX_IN_FLIGHT,
      )
      const isUnderWay = state === 'sending' && (claimedAt ?? 0) > endedAt - SENT_WITHIN_MS - errorMs
      if (isUnderWay) return []
      if (fault === undefined) return [`notification ${id} is ${state}, and no fault hit its process`]
      charged.set(fault, (charged.get(fault) ?? 0) + 1)
      return []
    })
}

/** Failures lasted long enough for notification 1 while the webhook was on, without faults, and no recipient got it. */
function isOverdue(record: PlayRecord, incident: IncidentFacts): boolean {
  const { facts, actions, faults, notifyAfterMs, endedAt } = record
  const { webhookId, openedAt, closedAt } = incident
  const success = (facts?.attempts ?? [])
    .filter((one) => one.webhookId === webhookId && one.outcome === 'succeeded' && one.endedAt >= openedAt)
    .reduce((first, one) => Math.min(first, one.endedAt), closedAt ?? endedAt)
  const wasReduced = actions.some(
    (action) => action.webhookId === webhookId && reduces(action) && action.from < success,
  )
  const disturbedMs = faults.reduce(
    (sum, { from, to }) => sum + Math.max(0, Math.min(to, success) - Math.max(from, openedAt)),
    0,
  )
  return (
    !wasReduced && success - openedAt - disturbedMs > notifyAfterMs + NOTIFIED_WITHIN_MS + rowErrorMs(faults)
  )
}

function problemsOf(
  record: PlayRecord,
  { id, kind, recipient, state, createdAt }: NotificationFacts,
  incident: IncidentFacts | undefined,
  mails: number,
): string[] {
  const problems: string[] = []
  const problem = (what: string): void =>
    void problems.push(`notification ${id} (${kind}, ${recipient}): ${what}`)
  const toleranceMs = TOLERANCE_MS + rowErrorMs(record.faults)
  if (mails > 1) problem(`sent ${mails} times`)
  if (state === 'sent' && mails === 0) problem('is said to be sent, but no mail came')
  if (incident === undefined) problem('belongs to no incident')
  else if (kind === 1 && createdAt - incident.openedAt < record.notifyAfterMs - toleranceMs)
    problem('came before failures had lasted long enough')
  else if (kind === 2 && (incident.exhaustedAt === null || createdAt < incident.exhaustedAt - toleranceMs))
    problem('came although nothing had failed permanently')
  return problems
}

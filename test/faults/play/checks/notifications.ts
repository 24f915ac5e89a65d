import type { IncidentFacts, NotificationFacts, PlayRecord } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'at most two notifications of an incident to one recipient'
const TOLERANCE_MS = 1_000
/** What a notification may take beyond its time, in ms. */
const NOTIFIED_WITHIN_MS = 30_000

/** Each recipient gets each kind once at most, by one mail at most, and none before its time. */
export function checkNotifications(record: PlayRecord): Violation[] {
  const { notifications } = record.facts
  const problems: string[] = []
  const seen = new Set<string>()
  for (const { incidentId, kind, channel, recipient } of notifications) {
    const key = `${incidentId}, kind ${kind}, to ${recipient} by ${channel}`
    if (seen.has(key) || (kind !== 1 && kind !== 2)) problems.push(`${key}: more than once`)
    seen.add(key)
  }
  for (const notification of notifications) problems.push(...problemsOf(record, notification))
  for (const incident of record.facts.incidents)
    if (isOverdue(record, incident)) problems.push(`incident ${incident.id} had no notification 1`)
  for (const { id, recipient } of record.mails)
    if (!notifications.some((row) => row.id === id && row.recipient === recipient))
      problems.push(`a mail to ${recipient} belongs to no notification`)
  return problems.map((detail) => ({ rule: RULE, deliveryId: null, detail }))
}

/** Failures lasted long enough for notification 1 while the webhook was on, without faults, and no recipient got it. */
function isOverdue({ facts, actions, faults, notifyAfterMs }: PlayRecord, incident: IncidentFacts): boolean {
  const { id, webhookId, openedAt, closedAt } = incident
  if (facts.notifications.some(({ incidentId, kind }) => incidentId === id && kind === 1)) return false
  const attempts = facts.attempts.filter((attempt) => attempt.webhookId === webhookId)
  const success = attempts
    .filter(({ outcome, endedAt }) => outcome === 'succeeded' && endedAt >= openedAt)
    .reduce((first, { endedAt }) => Math.min(first, endedAt), closedAt ?? Infinity)
  const wasOff = actions.some(
    (action) => action.kind === 'switch_off' && action.webhookId === webhookId && action.from < success,
  )
  const disturbedMs = faults.reduce(
    (sum, { from, to }) => sum + Math.max(0, Math.min(to, success) - Math.max(from, openedAt)),
    0,
  )
  return !wasOff && success - openedAt - disturbedMs > notifyAfterMs + NOTIFIED_WITHIN_MS
}

function problemsOf(record: PlayRecord, notification: NotificationFacts): string[] {
  const { id, kind, recipient, state, createdAt, incidentId } = notification
  const incident = record.facts.incidents.find((one) => one.id === incidentId)
  const mails = record.mails.filter((mail) => mail.id === id).length
  const problems: string[] = []
  const problem = (what: string): void =>
    void problems.push(`notification ${id} (${kind}, ${recipient}): ${what}`)
  if (mails > 1) problem(`sent ${mails} times`)
  if (state === 'sent' && mails === 0) problem('is said to be sent, but no mail came')
  if (state === 'pending' || state === 'sending') problem(`is still ${state} at the end`)
  if (incident === undefined) problem('belongs to no incident')
  else if (kind === 1 && createdAt - incident.openedAt < record.notifyAfterMs - TOLERANCE_MS)
    problem('came before failures had lasted long enough')
  else if (kind === 2 && (incident.exhaustedAt === null || createdAt < incident.exhaustedAt - TOLERANCE_MS))
    problem('came although nothing had failed permanently')
  return problems
}

import { describeLateness } from './checks/lateness.ts'
import { byDelivery, numberPosts } from './ledger.ts'
import type { IncidentFacts, PlayRecord, Violation } from './record.ts'

const MAX_VIOLATIONS = 20
const NEAR_MS = 1_000

/** What a play came to, in a few lines. */
export function summarise(record: PlayRecord): string {
  const { posts, facts, publications, actions, faults, processes } = record
  const accepted = publications.filter(({ tries }) => tries.some(({ status }) => status === 202)).length
  const count = (kinds: readonly string[]): string => {
    const counts = new Map<string, number>()
    for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1)
    return [...counts].map(([name, times]) => `${times} ${name}`).join(' + ') || 'none'
  }
  const repeats = [...byDelivery(posts)].flatMap(([id, own]) =>
    numberPosts(own, facts?.attempts.filter(({ deliveryId }) => deliveryId === id) ?? [], faults),
  )
  return [
    `${accepted} of ${publications.length} events accepted, ${posts.length} POSTs, ` +
      `${repeats.filter((post) => post.repeats !== null).length} of them repeats, ${actions.length} operations: ` +
      count(actions.map(({ kind }) => kind)),
    `deliveries ${count(facts?.deliveries.map(({ state }) => state) ?? [])}, ${facts?.incidents.length ?? 0} incidents, ` +
      `${facts?.notifications.length ?? 0} notifications`,
    `${faults.length} faults: ${count(faults.map(({ kind }) => kind))}`,
    `${describeLateness(record)}; ${processes.map(({ peakMemoryMb }) => `${Math.round(peakMemoryMb)} MB`).join(', ')}`,
  ].join('\n      ')
}

/** Names every violation with the seed, and the ledger, attempts and requests of its delivery. */
export function report(record: PlayRecord, violations: readonly Violation[]): string {
  const shown = violations.slice(0, MAX_VIOLATIONS).map(({ rule, deliveryId, detail }) => {
    const lines = [`${rule}: ${detail}`]
    if (deliveryId !== null) lines.push(...historyOf(record, deliveryId))
    for (const incident of record.facts?.incidents ?? [])
      if (detail.includes(incident.id)) lines.push(...historyOfIncident(record, incident))
    return lines.join('\n    ')
  })
  const faults = record.faults.map(
    ({ kind, process, detail, from, to }) =>
      `${at(record, from)} to ${at(record, to)} ${kind} ${detail} of ${process ?? 'all'}`,
  )
  return [
    // The first line is all that a summary of many tests shows.
    `${violations.length} promises broken, such as "${violations[0]?.rule}: ${violations[0]?.detail}"; repeat with POSTHORN_PLAY_SEED=${record.seed}`,
    ...shown,
    ...(violations.length > MAX_VIOLATIONS ? [`and ${violations.length - MAX_VIOLATIONS} more`] : []),
    'Faults:',
    ...faults.map((line) => `    ${line}`),
  ].join('\n')
}

/** Everything that happened to one delivery, in the order of time. */
function historyOf(record: PlayRecord, deliveryId: string): string[] {
  const attempts = (record.facts?.attempts ?? []).filter((attempt) => attempt.deliveryId === deliveryId)
  const posts = numberPosts(
    record.posts.filter((post) => post.deliveryId === deliveryId),
    attempts,
    record.faults,
  )
  const delivery = record.facts?.deliveries.find(({ id }) => id === deliveryId)
  const webhook = record.webhooks.find(({ id }) => id === delivery?.webhookId)
  const lines: [number, string][] = [
    ...posts.map(({ arrivedAt, endedAt, id, number, sender, status, recordedAt }): [number, string] => [
      arrivedAt,
      `post ${id}, attempt ${number}, of ${sender}, answered ${status ?? 'nothing'} by ${at(record, endedAt)}, recorded ${at(record, recordedAt)}`,
    ]),
    ...attempts.map(({ startedAt, endedAt, number, trigger, outcome, failureCode }): [number, string] => [
      startedAt,
      `attempt ${number} by ${trigger} until ${at(record, endedAt)}: ${outcome} ${failureCode ?? ''}`,
    ]),
    ...record.actions
      .filter((action) =>
        action.deliveryId === null
          ? action.webhookId === null || action.webhookId === delivery?.webhookId
          : action.deliveryId === deliveryId,
      )
      .map(({ from, to, kind, status, change }): [number, string] => [
        from,
        `${kind} ${JSON.stringify(change)} until ${at(record, to)}: ${status}`,
      ]),
  ]
  lines.sort(([one], [other]) => one - other)
  return [
    `delivery ${deliveryId} to "${webhook?.name ?? 'no webhook'}": ${delivery?.row ?? 'not in the database'}`,
    ...lines.map(([instant, line]) => `${at(record, instant)} ${line}`),
  ]
}

/** When it was opened and closed, and what happened to its webhook around its end. */
function historyOfIncident(
  record: PlayRecord,
  { id, webhookId, openedAt, closedAt }: IncidentFacts,
): string[] {
  const isNear = (instant: number | null): instant is number =>
    instant !== null && closedAt !== null && Math.abs(instant - closedAt) < NEAR_MS
  const lines: [number, string][] = []
  for (const { kind, webhookId: of, from, to, status } of record.actions)
    if ((of === webhookId || of === null) && isNear(from))
      lines.push([from, `${kind} until ${at(record, to)}: ${status}`])
  for (const attempt of record.facts?.attempts ?? [])
    if (attempt.webhookId === webhookId && isNear(attempt.endedAt))
      lines.push([attempt.endedAt, `attempt ${attempt.number} of ${attempt.deliveryId} ${attempt.outcome}`])
  for (const { id: deliveryId, webhookId: of, state, completedAt } of record.facts?.deliveries ?? [])
    if (of === webhookId && state === 'completed' && isNear(completedAt))
      lines.push([completedAt, `delivery ${deliveryId} ${state}`])
  lines.sort(([one], [other]) => one - other)
  return [
    `incident ${id} from ${at(record, openedAt)} to ${at(record, closedAt)}`,
    ...lines.map(([instant, line]) => `${at(record, instant)} ${line}`),
  ]
}

/** Seconds since the first POST of the play. */
function at({ posts }: PlayRecord, instant: number | null): string {
  if (instant === null) return 'never'
  return `${((instant - (posts[0]?.arrivedAt ?? 0)) / 1_000).toFixed(3)}s`
}

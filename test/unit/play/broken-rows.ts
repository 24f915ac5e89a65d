import {
  change,
  type Forged,
  forgeAttempt,
  type Forgery,
  forgePost,
  ORGANISATION_ID,
} from './forged-record.ts'

/** Records that the rows at the end show broken, by the rule. */
export const BROKEN_ROWS: { [rule: string]: Forgery[] } = {
  'incidents agree with attempts': [
    ['a failure without an incident', ({ facts }) => void (facts.incidents = [])],
    [
      'an incident without a failure',
      ({ facts }) =>
        void facts.incidents.unshift({ ...facts.incidents[0]!, openedAt: -9_000, closedAt: -8_000 }),
    ],
    [
      'two open incidents',
      ({ facts }) => void facts.incidents.push({ ...facts.incidents[0]!, openedAt: 130 }),
    ],
    [
      'an incident left open although all is delivered',
      ({ facts }) => void (facts.incidents[0]!.closedAt = null),
    ],
    [
      'an incident that a switch-off closed',
      ({ facts, actions }) => {
        actions.push(change(3_000, { enabled: false }))
        facts.incidents[0]!.closedAt = 3_005
      },
    ],
    ['an incident exhausted by nothing', ({ facts }) => void (facts.incidents[0]!.exhaustedAt = 130)],
    [
      'an incident closed while a delivery was unresolved',
      ({ facts, posts }) => {
        facts.deliveries[0] = { ...facts.deliveries[0]!, attempts: 3, completedAt: 20_000 }
        facts.deliveries.push({ ...facts.deliveries[0], id: 'delivery-2', attempts: 1, completedAt: 9_000 })
        facts.attempts = [1, 2, 3].map((number) =>
          forgeAttempt(number, [95, 1_195, 19_000][number - 1]!, number === 3 ? 200 : 500),
        )
        facts.attempts.push({
          ...forgeAttempt(1, 8_990, 200),
          deliveryId: 'delivery-2',
          responseBody: 'post 4',
        })
        posts.splice(1, 1, forgePost(2, 1_200, 500), forgePost(3, 19_005, 200))
        posts.push({ ...forgePost(4, 8_995, 200), deliveryId: 'delivery-2' })
        facts.incidents[0]!.closedAt = 9_000
        facts.incidents.push({ ...facts.incidents[0]!, id: 'incident-2', openedAt: 9_100, closedAt: 20_000 })
      },
    ],
  ],
  'at most two notifications of an incident to one recipient': [
    [
      'no notification although failures lasted',
      ({ facts, posts }) => {
        posts[1] = forgePost(2, 90_000, 200)
        facts.attempts[1] = forgeAttempt(2, 89_995, 200)
        facts.deliveries[0]!.completedAt = 90_020
        facts.incidents[0]!.closedAt = 90_020
      },
    ],
    ['a second mail', (record) => notify(record, { mails: 2 })],
    ['no mail', (record) => notify(record, { mails: 0 })],
    ['a mail without a reason', ({ mails }) => void mails.push({ id: 'other', recipient: 'a@test.example' })],
    ['a notification before its time', (record) => notify(record, { createdAt: 500 })],
    ['a notification 2 without a permanent failure', (record) => notify(record, { kind: 2 })],
    [
      'a message of an unknown outcome without a fault',
      (record) => notify(record, { state: 'unknown', mails: 0 }),
    ],
    [
      'the same kind twice to one recipient',
      (record) => {
        notify(record, {})
        notify(record, { id: 'notification-2' })
      },
    ],
  ],
  'processes stay sound': [
    ['a process that ended', ({ processes }) => void processes[0]!.endedByItself.push(500)],
    ['a process that grew', ({ processes }) => void (processes[0]!.peakMemoryMb = 2_000)],
    [
      'a fault in the log',
      ({ processes }) => void processes[0]!.faults.push('{"level":50,"event":"http.failed"}'),
    ],
  ],
  'everything comes to its end': [
    [
      'a delivery that waits although it is due',
      (record) => {
        record.endedAt = 9_000
        Object.assign(record.facts.deliveries[0]!, {
          state: 'waiting',
          completedAt: null,
          nextAttemptAt: 1_200,
        })
      },
    ],
    ['an organisation that is erased in part', ({ facts }) => void facts.halfErased.push(ORGANISATION_ID)],
    [
      'a notification that is pending although its incident is closed',
      (record) => {
        record.endedAt = 90_000
        notify(record, { state: 'pending', mails: 0 })
      },
    ],
    [
      'a retry job that still runs',
      ({ facts }) => void facts.retryJobs.push({ id: 'job-1', state: 'running' }),
    ],
  ],
}

export function notify(
  { facts, mails }: Forged,
  given: { id?: string; kind?: number; state?: string; createdAt?: number; mails?: number },
): void {
  const { id = 'notification-1', kind = 1, state = 'sent', createdAt = 9_000, mails: count = 1 } = given
  const recipient = 'a@test.example'
  facts.notifications.push({
    id,
    incidentId: 'incident-1',
    kind,
    channel: 'email',
    recipient,
    state,
    createdAt,
    claimedAt: createdAt,
  })
  for (let sent = 0; sent < count; sent++) mails.push({ id, recipient })
}

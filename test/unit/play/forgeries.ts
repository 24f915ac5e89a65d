import { checkRecord } from '../../faults/play/check-record.ts'
import type { Fault, UserAction, WebhookChange } from '../../faults/play/record.ts'
import {
  DELIVERY_ID,
  forgeAttempt,
  forgePost,
  forgeRecord,
  ORGANISATION_ID,
  WEBHOOK_ID,
} from './forged-record.ts'

type Record = ReturnType<typeof forgeRecord>

type Forgery = [what: string, forge: (record: Record) => void]

export const brokenRules = async (forge: (record: Record) => void): Promise<string[]> => {
  const record = forgeRecord()
  forge(record)
  return [...new Set((await checkRecord(record)).map(({ rule }) => rule))]
}

const fault = (kind: Fault['kind'], from: number, to: number, process = 'worker 2'): Fault => ({
  kind,
  process,
  detail: '',
  from,
  to,
})

const action = (kind: UserAction['kind'], from: number, deliveryId: string | null = null): UserAction => ({
  kind,
  organisationId: ORGANISATION_ID,
  process: 'api 1',
  change: null,
  webhookId: WEBHOOK_ID,
  deliveryId,
  from,
  to: from + 10,
  status: kind === 'retry' || kind === 'retry_all' ? 202 : 200,
})

const change = (from: number, changed: WebhookChange): UserAction => ({
  ...action('change', from),
  change: changed,
})

/** A third POST, 300 ms after the second was confirmed, which no attempt was recorded for. */
const postAgain = ({ posts }: Record): void => void posts.push(forgePost(3, 1_500, 200))

/** The retry one second earlier than it may come, so at once. */
export const comeEarly = ({ posts }: Record): void => void (posts[1] = forgePost(2, 200, 200))

/** Attempt 1 was confirmed, and is recorded as failed all the same. */
const confirmFirst = ({ posts }: Record): void => void (posts[0] = forgePost(1, 100, 200))

export const BROKEN: { [rule: string]: Forgery[] } = {
  'acknowledged events': [
    ['an event that is not in the database', ({ facts }) => void (facts.events = [])],
    ['a delivery that is not in the database', ({ facts }) => void (facts.deliveries = [])],
    [
      'a webhook that was on and got no delivery',
      ({ publications }) => void (publications[0]!.tries[0]!.deliveries = []),
    ],
    [
      'one Idempotency-Key that made two events',
      ({ publications, facts }) => {
        publications[0]!.idempotencyKey = 'key'
        facts.events.push({ ...facts.events[0]!, id: 'event-2' })
      },
    ],
    [
      'an event that was published once and stored twice',
      ({ facts }) => void facts.events.push({ ...facts.events[0]!, id: 'event-2' }),
    ],
    [
      'a completed delivery without a confirmed POST',
      ({ posts }) => void (posts[1] = forgePost(2, 1_200, 500)),
    ],
    [
      'a delivery that failed with attempts left',
      ({ facts }) => void (facts.deliveries[0]!.state = 'failed'),
    ],
    [
      'a delivery that is stopped without a reason',
      ({ facts }) => void (facts.deliveries[0]!.state = 'stopped'),
    ],
    [
      'a delivery that was held up, and not resumed with its webhook',
      ({ facts, actions, posts }) => {
        posts.splice(0)
        facts.attempts = []
        const stopped = { state: 'stopped', stopReason: 'webhook_disabled', attempts: 0, completedAt: 300 }
        facts.deliveries[0] = { ...facts.deliveries[0]!, ...stopped }
        actions.push(change(100, { enabled: false }), change(400, { enabled: true }))
      },
    ],
  ],
  'every request has an answer': [
    [
      'a request without an answer',
      ({ actions }) => void actions.push({ ...action('retry', 50), status: 0, to: 30_050 }),
    ],
    [
      'a request without an answer while the database was silent',
      ({ actions, faults }) => {
        actions.push({ ...action('retry', 50), status: 0, to: 30_050 })
        faults.push(fault('database_silence', 40, 20_000))
      },
    ],
    [
      'an answer 503 of a process that no fault hit',
      ({ actions, faults }) => {
        actions.push({ ...action('retry', 50), status: 503 })
        faults.push(fault('database_silence', 0, 200, 'api 2'))
      },
    ],
    ['an answer 500', ({ actions }) => void actions.push({ ...action('retry', 50), status: 500 })],
  ],
  'what a receiver confirmed stays confirmed': [
    ['a confirmed POST that is recorded as failed', confirmFirst],
    [
      'a confirmed POST whose delivery is stopped',
      ({ facts, actions }) => {
        facts.deliveries[0]!.state = 'stopped'
        actions.push(action('discard', 1_300, DELIVERY_ID))
      },
    ],
    [
      'a confirmed POST that a paused process recorded as timed out',
      (record) => {
        confirmFirst(record)
        record.faults.push(fault('pause', 90, 9_000))
        record.facts.attempts[0] = {
          ...record.facts.attempts[0]!,
          responseBody: null,
          failureCode: 'timeout',
        }
      },
    ],
    [
      'a confirmed POST that is recorded as failed, although only the recording was disturbed',
      (record) => {
        confirmFirst(record)
        record.faults.push(fault('recording_error', 90, 900))
      },
    ],
  ],
  'no attempt twice': [
    ['a POST after the confirmed one', postAgain],
    [
      'a POST that is repeated because recording it failed',
      (record) => {
        postAgain(record)
        record.faults.push(fault('recording_error', 1_150, 1_400))
      },
    ],
    [
      'a POST that is repeated because another process was killed',
      (record) => {
        postAgain(record)
        record.faults.push(fault('kill', 1_205, 1_300, 'worker 3'))
      },
    ],
    [
      'a POST that is repeated after its outcome was recorded',
      (record) => {
        postAgain(record)
        record.faults.push(fault('kill', 1_400, 1_450))
      },
    ],
    [
      'a POST that is repeated because Temporal was silent',
      (record) => {
        postAgain(record)
        record.faults.push(fault('temporal_silence', 1_150, 1_400))
      },
    ],
    ['a number that was left out', ({ facts }) => void (facts.attempts[1]!.number = 3)],
    [
      'two successes',
      ({ facts }) => void (facts.attempts[0] = { ...forgeAttempt(1, 95, 200), outcome: 'succeeded' }),
    ],
  ],
  'no attempt early': [
    ['a retry before its time', comeEarly],
    [
      'a retry of the schedule before its time, although a retry was asked for',
      (record) => {
        comeEarly(record)
        record.actions.push(action('retry', 150, DELIVERY_ID))
      },
    ],
    [
      'a retry before its time that was made again in time',
      ({ posts, faults }) => {
        posts.push(forgePost(3, 400, null))
        faults.push(fault('kill', 405, 600))
      },
    ],
  ],
  'every POST of a delivery is the same': [
    ['other bytes', ({ posts }) => void (posts[1]!.body += ' ')],
    ['a wrong signature', ({ posts }) => void (posts[1]!.signature = posts[1]!.signature.replace(/.$/, 'x'))],
    ['no signature', ({ posts }) => void (posts[1]!.signature = '')],
    ['another webhook', ({ posts }) => void (posts[1]!.webhookId = 'webhook-2')],
    ['a POST of no delivery', ({ posts }) => void (posts[1]!.deliveryId = 'delivery-2')],
  ],
  'nothing is sent to a webhook that does not take it': [
    [
      'a POST five seconds after the switch-off',
      ({ actions, posts }) => {
        actions.push(change(150, { enabled: false }))
        posts[1] = forgePost(2, 5_200, 200)
      },
    ],
    [
      'a POST five seconds after its key was removed',
      ({ actions, posts }) => {
        actions.push(change(150, { subscribedEventKeys: ['customer:updated'] }))
        posts[1] = forgePost(2, 5_200, 200)
      },
    ],
    [
      'a POST to the URL before',
      ({ actions, posts }) => {
        actions.push(change(150, { urlVersion: 1 }))
        posts[1] = forgePost(2, 5_200, 200)
      },
    ],
    [
      'a POST after the erasure of its organisation',
      ({ actions, posts }) => {
        actions.push({ ...action('erase', 150), webhookId: null, status: 202 })
        posts[1] = forgePost(2, 5_200, 200)
      },
    ],
  ],
  'the victim gets its events in time': [
    ['an event that came after three seconds', ({ posts }) => void (posts[0] = forgePost(1, 3_100, 500))],
    [
      'one that never came, although webhooks of others were locked',
      (record) => {
        record.posts.splice(0)
        record.endedAt = 9_000
        record.faults.push(fault('locked_webhooks', 0, 8_000))
      },
    ],
    [
      'an event that came a minute after a process was killed',
      ({ posts, faults }) => {
        posts[0] = forgePost(1, 60_100, 500)
        faults.push(fault('kill', 60, 500))
      },
    ],
  ],
  'a stream misses nothing': [
    ['an event that a client missed', ({ streams }) => void (streams[0]!.received = [])],
    ['an event that came twice', ({ streams }) => void streams[0]!.received.push('event-1')],
    ['a gap', ({ streams }) => void streams[0]!.gaps.push({ at: 500, process: 'api 1' })],
  ],
  'no retry that was accepted is forgotten': [
    [
      'an accepted retry without a POST',
      ({ actions, facts }) => {
        actions.push(action('retry', 1_300, DELIVERY_ID))
        facts.deliveries[0]!.completedAt = 99_000
      },
    ],
  ],
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
        Object.assign(record.facts.deliveries[0]!, { state: 'waiting', completedAt: null, nextAttemptAt: 1_200 })
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

export const SOUND: Forgery[] = [
  ['a delivery made at the second attempt', () => undefined],
  [
    'a retry at once that a member asked for',
    (record) => {
      comeEarly(record)
      record.facts.attempts[1]!.trigger = 'retry'
      record.actions.push(action('retry', 150, DELIVERY_ID))
    },
  ],
  [
    'a POST that is repeated because its process was killed',
    ({ posts, faults }) => {
      posts.push(forgePost(7, 1_150, null))
      faults.push(fault('kill', 1_155, 1_180))
    },
  ],
  [
    'a late event of the victim that a killed process held',
    ({ posts, faults }) => {
      posts[0] = forgePost(1, 20_100, 500)
      posts[1] = forgePost(2, 21_200, 200)
      faults.push(fault('kill', 60, 500))
    },
  ],
  [
    'an answer 503 of a process whose database was silent',
    ({ actions, faults }) => {
      actions.push({ ...action('retry', 50), status: 503 })
      faults.push(fault('database_silence', 0, 200, 'api 1'))
    },
  ],
  [
    'a confirmed POST that is recorded as failed, since its process was killed and another was answered 500',
    (record) => {
      record.posts.unshift(forgePost(7, 60, 200))
      record.faults.push(fault('kill', 65, 80))
    },
  ],
  [
    'a confirmed POST of a process that was paused, while another recorded its own',
    (record) => {
      record.posts.unshift(forgePost(7, 50, 200))
      record.faults.push(fault('pause', 55, 9_000))
    },
  ],
  [
    'a notification to each kind, once',
    (record) => {
      notify(record, {})
    },
  ],
  [
    'a webhook that was off when the event was published',
    ({ publications, facts, actions, posts }) => {
      publications[0]!.tries[0]!.deliveries = []
      facts.deliveries = []
      facts.attempts = []
      facts.incidents = []
      posts.splice(0)
      actions.push(change(-100, { enabled: false }))
    },
  ],
]

function notify(
  { facts, mails }: Record,
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

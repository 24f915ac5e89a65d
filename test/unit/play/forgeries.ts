import { checkRecord } from '../../faults/play/check-record.ts'
import type { LedgerPost } from '../../faults/play/record.ts'
import { BROKEN_ROWS } from './broken-rows.ts'
import {
  action,
  change,
  databaseClockStep,
  DELIVERY_ID,
  fault,
  type Forged,
  forgeAttempt,
  type Forgery,
  forgePost,
  forgeRecord,
} from './forged-record.ts'

export const brokenRules = async (forge: (record: Forged) => void): Promise<string[]> => {
  const record = forgeRecord()
  forge(record)
  return [...new Set((await checkRecord(record)).map(({ rule }) => rule))]
}

/** A third POST, 300 ms after the second was confirmed, which no attempt was recorded for. */
const postAgain = ({ posts }: Forged): void => void posts.push(forgePost(3, 1_500, 200))

/** The same POST of another delivery. */
export const ofAnother = (post: LedgerPost, id: number): LedgerPost => ({
  ...post,
  deliveryId: `other-${id}`,
})

/** The retry one second earlier than it may come, so at once. */
export const comeEarly = ({ posts }: Forged): void => void (posts[1] = forgePost(2, 200, 200))

/** The rows were read between the attempts; after the second POST, at 1200, a further one comes at `nextAt`. */
export const postAfterRows = (record: Forged, nextAt: number): void => {
  const { facts, posts } = record
  record.endedAt = 1_190
  posts.splice(1, 1, forgePost(2, 1_200, 500), forgePost(3, nextAt, 500))
  Object.assign(facts.deliveries[0]!, {
    state: 'waiting',
    attempts: 1,
    completedAt: null,
    nextAttemptAt: 1_120,
  })
  facts.attempts.splice(1)
  facts.incidents[0]!.closedAt = null
}

/** Attempt 1 was confirmed, and is recorded as failed all the same. */
const confirmFirst = ({ posts }: Forged): void => void (posts[0] = forgePost(1, 100, 200))

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
    [
      'an answer 500 after PostgreSQL answered with an internal error',
      ({ actions, faults }) => {
        actions.push({ ...action('retry', 5_000), status: 500 })
        faults.push({ ...fault('sql_error', 0, 200), process: null, detail: 'XX000 of each sweep' })
      },
    ],
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
        record.faults.push(fault('sql_error', 90, 900))
      },
    ],
  ],
  'no attempt twice': [
    ['a POST after the confirmed one', postAgain],
    ['two POSTs at once while the processes ended', (record) => postAfterRows(record, 1_205)],
    [
      'a POST that is repeated because recording it failed',
      (record) => {
        postAgain(record)
        record.faults.push(fault('sql_error', 1_150, 1_400))
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
      "a retry earlier than a step of PostgreSQL's clock explains",
      (record) => {
        comeEarly(record)
        record.faults.push(databaseClockStep('-0.5 s'))
      },
    ],
    [
      'a retry before its time, where the clock of the process before was behind',
      (record) => {
        comeEarly(record)
        record.facts.attempts[0]!.startedAt -= 700
        record.facts.attempts[0]!.endedAt -= 700
      },
    ],
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
      'one that came after three seconds, with nothing else in the queue',
      (record) => void Object.assign(record, { queuedMs: 2_000, posts: [forgePost(1, 3_100, 500)] }),
    ],
    [
      'one that never came, whatever shared the queue',
      (record) => {
        const others = Array.from({ length: 20 }, (_, id) =>
          ofAnother(forgePost(10 + id, 3_000 * id, 200), id),
        )
        Object.assign(record, { queuedMs: 5_000, endedAt: 60_000, posts: others })
      },
    ],
    [
      'one that never came, although webhooks of others were locked',
      (record) => {
        record.posts.splice(0)
        record.endedAt = 9_000
        record.faults.push(fault('locked_webhooks', 0, 8_000))
      },
    ],
    [
      'one that never came, although an API was killed',
      (record) => {
        record.posts.splice(0)
        record.endedAt = 9_000
        record.faults.push(fault('kill', 60, 8_000, 'api 1'))
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
  ...BROKEN_ROWS,
}

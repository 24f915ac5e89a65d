import {
  action,
  change,
  databaseClockStep,
  DELIVERY_ID,
  fault,
  type Forgery,
  forgePost,
} from './forged-record.ts'
import { notify } from './broken-rows.ts'
import { comeEarly, postAfterRows } from './forgeries.ts'

/** Changes of a record that break no promise. */
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
    "a retry that came early by a step of PostgreSQL's clock",
    (record) => {
      comeEarly(record)
      record.faults.push(databaseClockStep('-1 s'))
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
    'a stream that began between the publication of an event and its repetition',
    ({ streams, publications }) => {
      const [publication] = publications
      Object.assign(streams[0]!, { since: 60, received: [] })
      publication!.idempotencyKey = 'key-1'
      publication!.tries.push({ ...publication!.tries[0]!, from: 70, to: 90 })
    },
  ],
  ['a message under way when the play ended', (record) => notify(record, { state: 'sending', mails: 0 })],
  [
    'attempts that were made one after the other while the processes ended, when the rows had been read',
    (record) => postAfterRows(record, 3_300),
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
    'an answer 500 while PostgreSQL answered with an internal error',
    ({ actions, faults }) => {
      actions.push({ ...action('retry', 50), status: 500 })
      faults.push({ ...fault('sql_error', 0, 200), process: null, detail: 'XX000 of each sweep' })
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
    'a POST that its endpoint read on a busy machine when the time of its sender was over',
    ({ posts, facts, faults }) => {
      Object.assign(facts.attempts[0]!, { failureCode: 'timeout', statusCode: null, responseBody: null })
      posts[0] = forgePost(1, 600, 200)
      faults.push({ ...fault('busy_machine', 0, 700), process: null })
    },
  ],
  [
    'a notification to each kind, once',
    (record) => {
      notify(record, {})
    },
  ],
  [
    'an attempt that failed in an organisation that was being erased, and opened no incident',
    ({ facts, actions, posts }) => {
      Object.assign(facts.deliveries[0]!, { state: 'stopped', stopReason: 'webhook_deleted', attempts: 1 })
      facts.deliveries[0]!.completedAt = null
      facts.attempts.splice(1)
      facts.incidents = []
      posts.splice(1)
      actions.push({ ...action('erase', 60), webhookId: null, status: 202 })
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

import { createHmac } from 'node:crypto'
import type {
  AttemptFacts,
  Fault,
  Facts,
  LedgerPost,
  PlayRecord,
  UserAction,
  WebhookChange,
} from '../../faults/play/record.ts'

const WEBHOOK_ID = 'webhook-1'
export const ORGANISATION_ID = 'org-1'
export const DELIVERY_ID = 'delivery-1'
const SECRET = 'a signing secret'
const BODY = '{"event":"customer:created","data":{"id":"cus_1"}}'

export type Forged = PlayRecord & { facts: Facts }

export type Forgery = [what: string, forge: (record: Forged) => void]

/** The record of a play in which one event was published at 0, failed at 100 and was delivered at 1200. */
export function forgeRecord(): Forged {
  return {
    seed: 1,
    attemptTimeoutMs: 5_000,
    notifyAfterMs: 8_000,
    victimMs: 2_000,
    queuedMs: 0,
    endedAt: 9_000,
    webhooks: [
      {
        id: WEBHOOK_ID,
        organisationId: ORGANISATION_ID,
        name: 'healthy',
        signingSecret: SECRET,
        subscribedEventKeys: ['customer:created'],
        isVictim: true,
        hangsAtEnd: false,
      },
    ],
    posts: [forgePost(1, 100, 500), forgePost(2, 1_200, 200)],
    publications: [
      {
        organisationId: ORGANISATION_ID,
        dataId: 'cus_1',
        eventKey: 'customer:created',
        idempotencyKey: null,
        tries: [
          {
            process: 'api 1',
            from: 0,
            to: 50,
            status: 202,
            eventId: 'event-1',
            deliveries: [{ id: DELIVERY_ID, webhookId: WEBHOOK_ID }],
          },
        ],
      },
    ],
    actions: [],
    faults: [],
    streams: [{ organisationId: ORGANISATION_ID, since: -100, received: ['event-1'], gaps: [] }],
    facts: {
      events: [{ id: 'event-1', dataId: 'cus_1', body: BODY }],
      deliveries: [
        {
          id: DELIVERY_ID,
          eventId: 'event-1',
          webhookId: WEBHOOK_ID,
          state: 'completed',
          isTest: false,
          stopReason: null,
          attempts: 2,
          createdAt: 10,
          completedAt: 1_220,
          nextAttemptAt: null,
          row: '{}',
        },
      ],
      attempts: [forgeAttempt(1, 95, 500), forgeAttempt(2, 1_195, 200)],
      incidents: [
        { id: 'incident-1', webhookId: WEBHOOK_ID, openedAt: 120, closedAt: 1_220, exhaustedAt: null },
      ],
      notifications: [],
      retryJobs: [],
      halfErased: [],
    },
    mails: [],
    processes: [{ name: 'worker 2', log: '', faults: [], endedByItself: [], peakMemoryMb: 200 }],
  }
}

/** A POST of the delivery, answered 10 ms after it arrived; with a null status the sender hung up. */
export function forgePost(id: number, arrivedAt: number, status: number | null): LedgerPost {
  return {
    id,
    sender: 'worker 2',
    webhookId: WEBHOOK_ID,
    urlVersion: 0,
    deliveryId: DELIVERY_ID,
    signature: `sha256=${createHmac('sha256', SECRET).update(BODY).digest('hex')}`,
    body: BODY,
    arrivedAt,
    endedAt: arrivedAt + 10,
    status,
  }
}

/** The attempt that was recorded for the POST of the same number. */
export function forgeAttempt(number: number, startedAt: number, statusCode: number): AttemptFacts {
  const outcome = statusCode < 300 ? 'succeeded' : 'failed'
  return {
    deliveryId: DELIVERY_ID,
    webhookId: WEBHOOK_ID,
    number,
    trigger: 'schedule',
    startedAt,
    endedAt: startedAt + 20,
    recordedAt: startedAt + 25,
    outcome,
    failureCode: outcome === 'failed' ? 'http_status' : null,
    statusCode,
    responseBody: `post ${number}`,
  }
}

export const fault = (kind: Fault['kind'], from: number, to: number, process = 'worker 2'): Fault => ({
  kind,
  process,
  detail: '',
  from,
  to,
})

export const databaseClockStep = (detail: string): Fault => ({
  ...fault('database_clock_step', 0, 150),
  process: null,
  detail,
})

export const action = (
  kind: UserAction['kind'],
  from: number,
  deliveryId: string | null = null,
): UserAction => ({
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

export const change = (from: number, changed: WebhookChange): UserAction => ({
  ...action('change', from),
  change: changed,
})

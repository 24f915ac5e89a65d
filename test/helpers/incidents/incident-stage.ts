import type { DataSource } from 'typeorm'
import { findIncident } from '../../../src/db/queries/notifications.ts'
import { listOverview, type OverviewRow } from '../../../src/db/queries/overview.ts'
import { upsertMember } from '../../../src/db/queries/organisations.ts'
import { upsertPushSubscription } from '../../../src/db/queries/push-subscriptions.ts'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { purge } from '../../../src/retention/purge.ts'
import type { AttemptOutcome } from '../../../src/domain/attempt-outcome.ts'
import { ORGANIZATION_SETTINGS_UPDATE } from '../../../src/domain/permissions.ts'
import type { IncidentLabel } from '../../../src/domain/workflow-inputs.ts'
import { newId } from '../../../src/ids.ts'
import type { Channels } from '../../../src/incidents/notifications/send-due.ts'
import type { PostResult } from '../../../src/outbound/http-client.ts'
import type { TestApi } from '../api/api.ts'
import { attemptDependencies, attemptRequest, NO_SIGNALS } from '../deliveries/attempts.ts'
import { makeDue } from '../deliveries/set-row.ts'
import { createMember, createWebhookRow, publishRow } from '../database/factories.ts'
import {
  createFakeIncidentTemporal,
  type FakeIncidentTemporal,
  type VirtualClock,
} from './incident-temporal.ts'
import { silentLogger } from '../silent-logger.ts'

/** An attempt as its receiver saw it. Times are those of the virtual clock. */
export type MadeAttempt = { deliveryId: string; beganAtMs: number; endedAtMs: number; succeeded: boolean }

/** A recipient of notifications, on one channel. `memberId` is null for the organisation's own address. */
export type Recipient = { channel: 'email' | 'push'; recipient: string; memberId: string | null }

/** An attempt whose POST the receiver has not answered yet. */
export type UnderWay = { deliveryId: string; answer(succeeded: boolean): Promise<void> }

/** One webhook, and every operation on it. */
export type IncidentStage = {
  clock: VirtualClock
  temporal: FakeIncidentTemporal
  webhookId: string
  recipients: readonly Recipient[]
  publish(): Promise<void>
  /** Sends a test event; its delivery, or null where the webhook takes none. */
  test(): Promise<string | null>
  overview(): Promise<OverviewRow | undefined>
  /** Begins an attempt, of what waits before its time too, and stops at its POST; null when it came to none. */
  begin(deliveryId: string, number: number): Promise<UnderWay | null>
  /** Sends a member's request about this webhook to the API; returns its status. */
  request(method: string, path: string, body?: unknown): Promise<number>
  entitle(memberId: string, isEntitled: boolean): Promise<void>
  /** Deletes the failed and stopped deliveries up to this one, which are made old for it. */
  purgeUpTo(deliveryId: string): Promise<void>
  pass(minutes: number): Promise<void>
  label(incidentId: string): Promise<IncidentLabel>
}

type Seams = {
  dataSource: DataSource
  api: TestApi
  clock: VirtualClock
  channels: Channels
  onAttempt: (made: MadeAttempt, outcome: AttemptOutcome) => void
}

const RECEIVER_URL = 'https://receiver.example.com/'
const RETENTION = { completedDays: 30, failedDays: 90, auditDays: 365 }

/** Runs the real code on the real database; receiver, channels and Temporal are fakes at their typed seams. */
export async function createIncidentStage(seams: Seams): Promise<IncidentStage> {
  const { dataSource, api, clock } = seams
  const caller = await createMember(dataSource, { permissions: ['webhook:manage', 'customer:read'] })
  const { organisationId, apiKey } = caller
  const { id: webhookId } = await createWebhookRow(dataSource, {
    organisationId,
    url: RECEIVER_URL,
    subscribedEventKeys: ['customer:created'],
  })
  const recipients = await createRecipients(dataSource, organisationId)
  const temporal = createFakeIncidentTemporal(seams)
  const begin = createReceiverSide(seams, temporal, { organisationId, webhookId })

  return {
    clock,
    temporal,
    webhookId,
    recipients,
    begin,
    async publish() {
      await publishRow(dataSource, organisationId)
    },
    async test() {
      const url = `/api/orgs/${organisationId}/webhooks/${webhookId}/test`
      const { status, json } = await api.call('POST', url, { apiKey })
      return status === 202 ? (json as { deliveryId: string }).deliveryId : null
    },
    overview: async () => (await listOverview(dataSource, organisationId))[0],
    async request(method, path, body) {
      const url = `/api/orgs/${organisationId}/webhooks/${webhookId}${path}`
      return (await api.call(method, url, { apiKey, ...(body === undefined ? {} : { body }) })).status
    },
    async entitle(memberId, isEntitled) {
      await dataSource.query(`UPDATE member SET permissions = $3 WHERE organisation_id = $1 AND id = $2`, [
        organisationId,
        memberId,
        isEntitled ? [ORGANIZATION_SETTINGS_UPDATE] : [],
      ])
    },
    async purgeUpTo(deliveryId) {
      await dataSource.query(
        `UPDATE delivery SET completed_at = now() - interval '91 days', sweep_at = NULL
          WHERE webhook_id = $1 AND state IN ('failed', 'stopped') AND id <= $2`,
        [webhookId, deliveryId],
      )
      await purge({ dataSource, logger: silentLogger }, RETENTION, NO_SIGNALS.shutDown)
    },
    async pass(minutes) {
      clock.aheadMs += minutes * 60_000
      await putBack(dataSource, webhookId, minutes)
    },
    async label(incidentId) {
      const { openedAt } = (await findIncident(dataSource, organisationId, incidentId))!
      return { organisationId, webhookId, incidentId, openedAt, url: RECEIVER_URL }
    },
  }
}

/** Attempts by the real code, whose receiver answers when it is told to. */
function createReceiverSide(
  { dataSource, clock, onAttempt }: Seams,
  temporal: FakeIncidentTemporal,
  of: { organisationId: string; webhookId: string },
): IncidentStage['begin'] {
  const posts = new Map<string, () => Promise<PostResult>>()
  const attempt = createAttempt({
    ...attemptDependencies(dataSource),
    incidentWorkflows: temporal,
    httpClient: {
      post: ({ headers }) => posts.get(headers['X-Webhook-Event-ID']!)!(),
      close: () => Promise.resolve(),
    },
  })
  let latestMs = 0
  return async (deliveryId, number) => {
    if (number > 1) await makeDue(dataSource, [deliveryId])
    // No two attempts begin in the same millisecond, so that their order is known.
    const beganAt = (latestMs = Math.max(Date.now(), latestMs + 1))
    let answer: (result: PostResult) => void = () => undefined
    const posted = new Promise<true>((resolve) => {
      posts.set(deliveryId, () => {
        resolve(true)
        return new Promise((answered) => (answer = answered))
      })
    })
    const request = attemptRequest({ ...of, deliveryId }, { number, maxWaitMs: 0, queue: 'slow' })
    const outcome = attempt(request, NO_SIGNALS)
    const isPosted = await Promise.race([posted, outcome.then(() => false)])
    if (!isPosted) return null
    return {
      deliveryId,
      async answer(succeeded) {
        const endedAt = Math.max(Date.now(), beganAt)
        answer(answerOf(succeeded, beganAt, endedAt))
        const { aheadMs } = clock
        const made = { deliveryId, succeeded, beganAtMs: beganAt + aheadMs, endedAtMs: endedAt + aheadMs }
        onAttempt(made, await outcome)
      },
    }
  }
}

function answerOf(succeeded: boolean, beganAt: number, endedAt: number): PostResult {
  return {
    succeeded,
    failureCode: succeeded ? null : 'http_status',
    statusCode: succeeded ? 200 : 503,
    error: succeeded ? null : 'The receiver answered 503.',
    startedAt: new Date(beganAt),
    durationMs: endedAt - beganAt,
    response: null,
    isInconclusive: false,
  }
}

/** The organisation and two members that may change its settings; the second has push enabled. */
async function createRecipients(dataSource: DataSource, organisationId: string): Promise<Recipient[]> {
  const members = ['an', 'bo'].map((name) => ({ id: `mem_${name}`, name, email: `${name}@test.example` }))
  for (const member of members) {
    const rights = { fullAccess: false, permissions: [ORGANIZATION_SETTINGS_UPDATE] }
    await upsertMember(dataSource, organisationId, {
      ...member,
      ...rights,
      pushEnabled: member.name === 'bo',
    })
  }
  const subscription = { id: newId(), organisationId, memberId: 'mem_bo' }
  const keys = { endpoint: 'https://push.example.com/1', p256dh: 'p', auth: 'a' }
  await upsertPushSubscription(dataSource, { ...subscription, ...keys }, 1)
  return [
    { channel: 'email', recipient: 'info@test.example', memberId: null },
    ...members.map(({ id, email }): Recipient => ({ channel: 'email', recipient: email, memberId: id })),
    { channel: 'push', recipient: subscription.id, memberId: subscription.memberId },
  ]
}

/** Makes everything of the webhook older. */
async function putBack(dataSource: DataSource, webhookId: string, minutes: number): Promise<void> {
  const older = (columns: string): string =>
    columns
      .split(' ')
      .map((column) => `${column} = ${column} - $2 * interval '1 minute'`)
      .join(', ')
  await dataSource.query(
    `WITH attempts AS (
       UPDATE attempt SET ${older('started_at')} WHERE delivery_id IN (SELECT id FROM delivery WHERE webhook_id = $1)
     ),
     deliveries AS (
       UPDATE delivery SET ${older('created_at workflow_started_at completed_at next_attempt_at lease_until sweep_at')}
        WHERE webhook_id = $1
     ), notifications AS (
       UPDATE notification SET ${older('created_at claimed_at sent_at')}
        WHERE incident_id IN (SELECT id FROM incident WHERE webhook_id = $1)
     )
     UPDATE incident
        SET ${older('opened_at closed_at exhausted_at resumed_at first_notified_at second_notified_at sweep_at')}
      WHERE webhook_id = $1`,
    [webhookId, minutes],
  )
}

import { randomUUID } from 'node:crypto'
import pLimit from 'p-limit'
import type { DataSource } from 'typeorm'
import { untilDatabaseAnswers } from '../db/patience.ts'
import { findRecipients, findWebhookStanding, type RecipientRows } from '../db/queries/incident-look.ts'
import { findIncidentLabel } from '../db/queries/incidents.ts'
import {
  claimNotification,
  countNotifications,
  findPending,
  recordNotification,
  settleNotifications,
  type PendingNotification,
} from '../db/queries/notifications.ts'
import {
  deletePushSubscription,
  findPushSubscription,
  type PushTarget,
} from '../db/queries/push-subscriptions.ts'
import type { NotificationCounts, NotificationKind } from '../domain/incident-rules.ts'
import { recipientsOf } from '../domain/notification-recipients.ts'
import { ORGANIZATION_SETTINGS_UPDATE } from '../domain/permissions.ts'
import type { Logger } from '../logger.ts'
import type { Notice } from './notice.ts'
import type { PushOutcome } from './push.ts'
import type { SendOutcome } from './send-outcome.ts'

/** Sends one message to one recipient; a channel that is not set up is null. Neither throws. */
export type Channels = {
  email:
    | ((notice: Notice, to: { id: string; address: string; name: string | null }) => Promise<SendOutcome>)
    | null
  push: ((notice: Notice, to: PushTarget & { organisationId: string }) => Promise<PushOutcome>) | null
}

export type SendDependencies = { dataSource: DataSource; logger: Logger; channels: Channels }

export type SendRequest = {
  organisationId: string
  incidentId: string
  /** What is refused now is not tried again. */
  giveUp: boolean
}

/** Messages under way at once for one incident: one recipient that hangs keeps nobody else from being told. */
const CONCURRENT_SENDS = 4

/**
 * Sends what is pending for an incident: each message under a claim of its own, taken before anything leaves the house
 * and never taken twice, unless the try provably ended without acceptance. Returns how the notifications stand.
 */
export async function sendDue(
  dependencies: SendDependencies,
  request: SendRequest,
  signal: AbortSignal,
): Promise<NotificationCounts> {
  const { dataSource, logger } = dependencies
  const { organisationId, incidentId } = request
  const settle = async (giveUp: boolean): Promise<void> => {
    const lost = await settleNotifications(dataSource, incidentId, giveUp)
    if (lost > 0)
      logger.error({ event: 'notification.unknown', incidentId, count: lost }, 'notification.unknown')
  }
  await untilDatabaseAnswers(() => settle(false), signal)
  const pending = await untilDatabaseAnswers(() => findPending(dataSource, incidentId), signal)
  if (pending.length > 0) {
    const limit = pLimit(CONCURRENT_SENDS)
    await limit.map(pending, async (notification) => {
      signal.throwIfAborted()
      await sendOne(dependencies, { organisationId, incidentId }, notification, signal)
    })
    if (request.giveUp) await untilDatabaseAnswers(() => settle(true), signal)
  }
  return untilDatabaseAnswers(() => countNotifications(dataSource, incidentId), signal)
}

async function sendOne(
  dependencies: SendDependencies,
  incident: Pick<SendRequest, 'organisationId' | 'incidentId'>,
  notification: PendingNotification,
  signal: AbortSignal,
): Promise<void> {
  const { dataSource, logger } = dependencies
  const { id, kind, channel } = notification
  // All that is needed is read before the claim: between that and the message nothing but the sending can fail.
  const send = await untilDatabaseAnswers(() => prepare(dependencies, incident, notification), signal)
  const claim = randomUUID()
  if (!(await untilDatabaseAnswers(() => claimNotification(dataSource, id, claim), signal))) return
  const outcome = await send()
  const error = outcome.state === 'sent' ? null : outcome.error
  const state = outcome.state === 'refused' ? 'pending' : outcome.state
  // How it ended is worth waiting for: the message has left the house.
  await untilDatabaseAnswers(() => recordNotification(dataSource, id, claim, { state, error }))
  const event = `notification.${outcome.state}`
  const fields = { event, ...incident, notificationId: id, kind, channel, error }
  if (outcome.state === 'sent') logger.info(fields, event)
  else if (outcome.state === 'refused') logger.warn(fields, event)
  else logger.error(fields, event)
}

/** Everything is read anew: the recipient may have lost the permission, and the figures are those of this moment. */
async function prepare(
  { dataSource, channels }: SendDependencies,
  { organisationId, incidentId }: Pick<SendRequest, 'organisationId' | 'incidentId'>,
  { id, kind, channel, recipient }: PendingNotification,
): Promise<() => Promise<SendOutcome>> {
  const people = await findRecipients(dataSource, organisationId, ORGANIZATION_SETTINGS_UPDATE)
  const to = recipientsOf(people).find((one) => one.channel === channel && one.recipient === recipient)
  if (to === undefined) return failing('no longer a recipient')
  const notice = await findNotice(dataSource, incidentId, kind, people)
  if (channel === 'email') {
    const { email } = channels
    return email === null
      ? failing('no mail server is set up')
      : () => email(notice, { id, address: recipient, name: to.name })
  }
  const { push } = channels
  if (push === null) return failing('push is not set up')
  const subscription = await findPushSubscription(dataSource, organisationId, recipient)
  if (subscription === null) return failing('no longer subscribed')
  return async () => {
    const outcome = await push(notice, { ...subscription, organisationId })
    if (outcome.gone === true)
      await untilDatabaseAnswers(() => deletePushSubscription(dataSource, organisationId, recipient))
    return outcome
  }
}

function failing(error: string): () => Promise<SendOutcome> {
  return () => Promise.resolve({ state: 'failed', error })
}

async function findNotice(
  dataSource: DataSource,
  incidentId: string,
  kind: NotificationKind,
  { organisation }: RecipientRows,
): Promise<Notice> {
  const incident = await findIncidentLabel(dataSource, incidentId)
  if (incident === null) throw new Error('a notification without its incident')
  const { webhookId, url, openedAt } = incident
  const { streak, waiting, failed, lastFailure } = await findWebhookStanding(dataSource, incident)
  return {
    kind,
    incidentId,
    webhookId,
    organisationName: organisation.name,
    timeZone: organisation.timeZone,
    url,
    failingSince: kind === 1 && streak !== null ? new Date(streak.sinceMs) : openedAt,
    waiting,
    failed,
    lastError: lastFailure.error,
  }
}

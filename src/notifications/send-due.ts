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
import type { NotificationChannel, NotificationCounts, NotificationKind } from '../domain/incident-rules.ts'
import { recipientsOf } from '../domain/notification-recipients.ts'
import { ORGANIZATION_SETTINGS_UPDATE } from '../domain/permissions.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import type { Admission } from './admission.ts'
import type { Notice } from './notice.ts'
import type { PushOutcome } from './push.ts'
import type { SendOutcome } from './send-outcome.ts'

/** Sends one message to one recipient, and never throws; `admission` bounds how many are under way. */
type Channel<To, Outcome> = { admission: Admission; send(notice: Notice, to: To): Promise<Outcome> }

/** The ways in which people are told; one that is not set up is null. */
export type Channels = {
  email: Channel<{ id: string; address: string; name: string | null }, SendOutcome> | null
  push: Channel<PushTarget & { organisationId: string }, PushOutcome> | null
}

export type SendDependencies = {
  dataSource: DataSource
  logger: Logger
  metrics: Metrics
  channels: Channels
}

export type SendRequest = {
  organisationId: string
  incidentId: string
  /** Also what was refused before; without it only what has never been tried. */
  retry: boolean
}

/**
 * Messages of one incident under way at once by one channel: a recipient that hangs keeps nobody else from being told.
 */
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
  const { dataSource, logger, metrics } = dependencies
  const { organisationId, incidentId, retry } = request
  const settled = await untilDatabaseAnswers(() => settleNotifications(dataSource, incidentId), signal)
  for (const { kind, channel, state } of settled) metrics.notificationEnded({ kind, channel, state })
  const lost = settled.filter(({ state }) => state === 'unknown').length
  if (lost > 0)
    logger.error({ event: 'notification.unknown', incidentId, count: lost }, 'notification.unknown')
  const pending = await untilDatabaseAnswers(() => findPending(dataSource, incidentId, retry), signal)
  const by = (channel: NotificationChannel) => pending.filter((one) => one.channel === channel)
  await Promise.all(
    [by('email'), by('push')].map((notifications) =>
      pLimit(CONCURRENT_SENDS).map(notifications, async (notification) => {
        signal.throwIfAborted()
        await sendOne(dependencies, { organisationId, incidentId }, notification, signal)
      }),
    ),
  )
  return untilDatabaseAnswers(() => countNotifications(dataSource, incidentId), signal)
}

async function sendOne(
  dependencies: SendDependencies,
  incident: Pick<SendRequest, 'organisationId' | 'incidentId'>,
  notification: PendingNotification,
  signal: AbortSignal,
): Promise<void> {
  const { channels } = dependencies
  const leave = await (channels[notification.channel]?.admission.enter() ?? NO_BOUND)
  if (leave === null) return
  try {
    await claimAndSend(dependencies, incident, notification, signal)
  } finally {
    leave()
  }
}

/** What is not sent at all needs no room. */
const NO_BOUND = Promise.resolve(() => undefined)

async function claimAndSend(
  dependencies: SendDependencies,
  incident: Pick<SendRequest, 'organisationId' | 'incidentId'>,
  notification: PendingNotification,
  signal: AbortSignal,
): Promise<void> {
  const { dataSource, logger, metrics } = dependencies
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
  metrics.notificationEnded({ kind, channel, state: outcome.state })
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
  const to = recipientsOf(people).find((one) => one.channel === channel && isSame(one.recipient, recipient))
  if (to === undefined) return failing('no longer a recipient')
  const notice = await findNotice(dataSource, incidentId, kind, people)
  if (channel === 'email') {
    const { email } = channels
    return email === null
      ? failing('no mail server is set up')
      : () => email.send(notice, { id, address: recipient, name: to.name })
  }
  const { push } = channels
  if (push === null) return failing('push is not set up')
  const subscription = await findPushSubscription(dataSource, organisationId, recipient)
  if (subscription === null) return failing('no longer subscribed')
  return async () => {
    const outcome = await push.send(notice, { ...subscription, organisationId })
    if (outcome.gone === true)
      await untilDatabaseAnswers(() => deletePushSubscription(dataSource, organisationId, recipient))
    return outcome
  }
}

/** Addresses are one and the same in whatever case; ids have none. */
function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
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

import { randomUUID } from 'node:crypto'
import pLimit from 'p-limit'
import type { DataSource } from 'typeorm'
import { retryWhileUnavailable } from '../../db/connection/connection-errors.ts'
import {
  findIncident,
  findRecipients,
  findEvaluationInputs,
  type RecipientRows,
  claimNotification,
  countNotifications,
  findPending,
  recordNotification,
  settleNotifications,
  type PendingNotification,
} from '../../db/queries/notifications.ts'
import {
  deleteEndedPushSubscriptions,
  deletePushSubscriptions,
  findPushSubscription,
  type PushTarget,
} from '../../db/queries/push-subscriptions.ts'
import { findWebhook } from '../../db/queries/webhooks.ts'
import {
  type NotificationChannel,
  type NotificationCounts,
  type NotificationKind,
  recipientsOf,
} from '../../domain/notification-rules.ts'
import { ORGANIZATION_SETTINGS_UPDATE } from '../../domain/permissions.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { Notice, SendOutcome } from './mail-text.ts'

/** Sends one message to one recipient, and never throws; `limiter` bounds the messages in flight. */
type Channel<To> = { limiter: SendLimiter; send(notice: Notice, to: To): Promise<SendOutcome> }

/** The channels of notifications; null where one is not configured. */
export type Channels = {
  email: Channel<{ id: string; address: string; name: string | null }> | null
  push: Channel<PushTarget & { organisationId: string }> | null
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
  /** Includes notifications that were refused before; without it only those never tried. */
  retry: boolean
}

/** Messages of one incident in flight per channel, so that one slow recipient does not block the others. */
const CONCURRENT_SENDS = 4

/** After a longer claim nothing is sent in this round: the incident may be over. */
const MAX_CLAIM_MS = 10_000

/**
 * Sends the pending notifications of an incident. Each is claimed before it is sent, and claimed again only when the
 * try was provably not accepted. Returns the incident's notifications counted by kind and state.
 */
export async function sendDue(
  dependencies: SendDependencies,
  request: SendRequest,
  signal: AbortSignal,
): Promise<NotificationCounts> {
  const { dataSource, logger, metrics, channels } = dependencies
  const { organisationId, incidentId, retry } = request
  const settled = await retryWhileUnavailable(() => settleNotifications(dataSource, incidentId), signal)
  for (const { kind, channel, state } of settled) metrics.notificationEnded({ kind, channel, state })
  const lost = settled.filter(({ state }) => state === 'unknown').length
  if (lost > 0) logger.error({ event: 'notification.outcome_lost', incidentId, count: lost })
  const pending = await retryWhileUnavailable(() => findPending(dataSource, incidentId, retry), signal)
  const by = (channel: NotificationChannel) => pending.filter((one) => one.channel === channel)
  await Promise.all(
    [by('email'), by('push')].map((notifications) =>
      pLimit(CONCURRENT_SENDS).map(notifications, async (notification) => {
        signal.throwIfAborted()
        const inTurn = channels[notification.channel]?.limiter ?? UNBOUNDED
        const incident = { organisationId, incidentId }
        await inTurn(() => claimAndSend(dependencies, incident, notification, signal))
      }),
    ),
  )
  return retryWhileUnavailable(() => countNotifications(dataSource, incidentId), signal)
}

/** For a channel that is not configured: its notifications fail without being sent. */
const UNBOUNDED: SendLimiter = (send) => send()

async function claimAndSend(
  dependencies: SendDependencies,
  incident: Pick<SendRequest, 'organisationId' | 'incidentId'>,
  notification: PendingNotification,
  signal: AbortSignal,
): Promise<void> {
  const { dataSource, logger, metrics } = dependencies
  const { id, kind, channel } = notification
  // Everything is read before the claim, so that after it only the sending can fail.
  const send = await retryWhileUnavailable(() => prepare(dependencies, incident, notification), signal)
  const claim = randomUUID()
  let askedAtMs = 0
  const claimOnce = (): Promise<boolean> => {
    askedAtMs = performance.now()
    return claimNotification(dataSource, id, claim)
  }
  if (!(await retryWhileUnavailable(claimOnce, signal))) return
  const isLate = performance.now() - askedAtMs > MAX_CLAIM_MS
  const outcome: SendOutcome = isLate ? { state: 'refused', error: 'its claim took too long' } : await send()
  const error = outcome.state === 'sent' ? null : outcome.error
  const state = outcome.state === 'refused' ? 'pending' : outcome.state
  // Not aborted: the message was sent, and its outcome must not be lost.
  await retryWhileUnavailable(() => recordNotification(dataSource, id, claim, { state, error }))
  // A message whose recipient is no longer one, or whose channel is not configured, is not lost.
  const ended = isObsolete(outcome) ? 'obsolete' : outcome.state
  metrics.notificationEnded({ kind, channel, state: ended })
  const fields = { event: `notification.${ended}`, ...incident, notificationId: id, kind, channel, error }
  if (ended === 'sent' || ended === 'obsolete') logger.info(fields)
  else if (ended === 'refused') logger.warn(fields)
  else logger.error(fields)
}

/** Reads everything again: the recipient may have lost the permission, and the message states current numbers. */
async function prepare(
  { dataSource, channels }: SendDependencies,
  { organisationId, incidentId }: Pick<SendRequest, 'organisationId' | 'incidentId'>,
  { id, kind, channel, recipient }: PendingNotification,
): Promise<() => Promise<SendOutcome>> {
  await deleteEndedPushSubscriptions(dataSource, organisationId)
  const recipients = await findRecipients(dataSource, organisationId, ORGANIZATION_SETTINGS_UPDATE)
  const to = recipientsOf(recipients).find(
    (one) => one.channel === channel && isSame(one.recipient, recipient),
  )
  if (to === undefined) return failing('no longer a recipient', { isObsolete: true })
  const notice = await findNotice(dataSource, { organisationId, incidentId }, kind, recipients)
  // The claim will be refused.
  if (notice === null) return failing('its webhook is deleted')
  if (channel === 'email') {
    const { email } = channels
    return email === null
      ? failing('no mail server is set up', { isObsolete: true })
      : () => email.send(notice, { id, address: recipient, name: to.name })
  }
  const { push } = channels
  if (push === null) return failing('push is not set up', { isObsolete: true })
  const subscription = await findPushSubscription(dataSource, organisationId, recipient)
  if (subscription === null) return failing('no longer subscribed', { isObsolete: true })
  return async () => {
    const outcome = await push.send(notice, { ...subscription, organisationId })
    // The browser no longer has it.
    if (isObsolete(outcome))
      await retryWhileUnavailable(() =>
        deletePushSubscriptions(dataSource, { organisationId, id: recipient }),
      )
    return outcome
  }
}

/** Ignores case, which distinguishes neither addresses nor ids. */
function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

function failing(error: string, why: { isObsolete?: true } = {}): () => Promise<SendOutcome> {
  return () => Promise.resolve({ state: 'failed', error, ...why })
}

function isObsolete(outcome: SendOutcome): boolean {
  return outcome.state !== 'sent' && outcome.isObsolete === true
}

async function findNotice(
  dataSource: DataSource,
  { organisationId, incidentId }: Pick<SendRequest, 'organisationId' | 'incidentId'>,
  kind: NotificationKind,
  { organisation }: RecipientRows,
): Promise<Notice | null> {
  const incident = await findIncident(dataSource, organisationId, incidentId)
  if (incident === null) throw new Error('a notification without its incident')
  const { webhookId, openedAt } = incident
  const webhook = await findWebhook(dataSource, organisationId, webhookId)
  if (webhook === null) return null
  const { streak, waiting, failed, lastFailure } = await findEvaluationInputs(dataSource, incident)
  // A webhook that was switched off and on, and not attempted since, has not recovered.
  const wasFailing = async (): Promise<boolean> =>
    incident.resumedAt !== null &&
    (await findEvaluationInputs(dataSource, { ...incident, resumedAt: null })).streak !== null
  return {
    kind,
    incidentId,
    webhookId,
    organisationName: organisation.name,
    timeZone: organisation.timeZone,
    url: webhook.url,
    webhookDescription: webhook.description,
    failingSince: kind === 1 && streak !== null ? new Date(streak.sinceMs) : openedAt,
    isFailing: kind === 1 && (streak !== null || (await wasFailing())),
    waiting,
    failed,
    lastError: lastFailure.error,
  }
}

/** Runs `send`, and bounds how many run in this process; does not run it where no slot is free in time. */
export type SendLimiter = (send: () => Promise<void>) => Promise<void>

/**
 * Creates `slots` slots, for which up to `queue` callers wait `waitMs` at most. A message that gets none has not been
 * claimed and is tried again later, so that a slow server blocks neither rows nor the slots of deliveries.
 */
export function createSendLimiter(options: { slots: number; queue: number; waitMs: number }): SendLimiter {
  let free = options.slots
  const waiting: (() => void)[] = []

  function isAdmitted(): Promise<boolean> {
    return new Promise((resolve) => {
      const admit = (): void => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(admit), 1)
        resolve(false)
      }, options.waitMs)
      waiting.push(admit)
    })
  }

  return async (send) => {
    if (free > 0) free--
    else if (waiting.length >= options.queue || !(await isAdmitted())) return
    try {
      await send()
    } finally {
      const admitNext = waiting.shift()
      if (admitNext === undefined) free++
      else admitNext()
    }
  }
}

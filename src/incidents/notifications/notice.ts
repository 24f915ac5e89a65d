import type { NotificationKind } from '../../domain/notification-rules.ts'

/** The facts of an incident that a notification states. */
export type Notice = {
  kind: NotificationKind
  incidentId: string
  webhookId: string
  organisationName: string
  /** The organisation's setting, which may be no IANA name. */
  timeZone: string
  /** The webhook's URL; messages show it shortened by `nameWebhook`. */
  url: string
  /** What its users call the webhook; '' where they gave it no name. */
  webhookDescription: string
  failingSince: Date
  /** Numbers of deliveries that wait for a retry, and that have permanently failed. */
  waiting: number
  failed: number
  /** The error of the latest failed attempt, as customers see it; null where it was purged. */
  lastError: string | null
}

/**
 * The outcome of one try to send a message. `sent`: accepted. `refused`: not accepted, and a later try may succeed.
 * `failed`: not accepted, and no try will be. `unknown`: it may have been accepted, so it is never sent again. `error` is
 * a few words for an operator, without secrets.
 */
export type SendOutcome = { state: 'sent' } | { state: 'refused' | 'failed' | 'unknown'; error: string }

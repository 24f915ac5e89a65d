import type { NotificationKind } from '../domain/incident-rules.ts'

/** What there is to tell about an incident. */
export type Notice = {
  kind: NotificationKind
  incidentId: string
  webhookId: string
  organisationName: string
  /** As the organisation has it: an IANA name, or something that is none. */
  timeZone: string
  /** The webhook's URL. It is shown as `nameWebhook` shortens it, never whole. */
  url: string
  /** Since when deliveries have been failing. */
  failingSince: Date
  /** Deliveries that wait for a retry, and that are permanently failed, at this moment. */
  waiting: number
  failed: number
  /** The latest failed attempt's error, in the words that customers see; null where it is gone. */
  lastError: string | null
}

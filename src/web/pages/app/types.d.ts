import type { nothing, TemplateResult } from 'lit-html'
import type { Static } from 'typebox'
import type {
  AuditEntrySchema,
  CreatedApiKeySchema,
  OwnApiKeyListSchema,
} from '../../../http/schemas/organisation.ts'
import type { ProblemSchema } from '../../../http/schemas/common.ts'
import type { DeliveryDetailSchema, DeliveryRequestSchema } from '../../../http/schemas/delivery-detail.ts'
import type { DeliverySchema } from '../../../http/schemas/delivery.ts'
import type { EventKeyListSchema, EventSummarySchema, EventSchema } from '../../../http/schemas/event.ts'
import type {
  ActivityListSchema,
  ActivityQuerySchema,
  ActivitySchema,
  FailuresSchema,
  IncidentSchema,
  OverviewListSchema,
} from '../../../http/schemas/overview.ts'
import type {
  OperatorOverviewSchema,
  OperatorSessionSchema,
  OperatorWebhookSchema,
} from '../../../http/schemas/operator-view.ts'
import type { PushSubscriptionListSchema } from '../../../http/schemas/push-subscription.ts'
import type { ReplayCountSchema, ReplaySchema } from '../../../http/schemas/replay.ts'
import type { RetryJobSchema } from '../../../http/schemas/retry.ts'
import type { SessionSchema } from '../../../http/schemas/session.ts'
import type { createApi } from './lib/api.js'
import type { createTimes } from './lib/times.js'

declare global {
  /** Programs that verify a signature, which the bundle has from docs/verify. */
  const VERIFY_SAMPLES: readonly { language: string; program: string }[]
}

/** The answers of the API, typed by its schemas. */
export type Problem = Static<typeof ProblemSchema>
/** A member as a question names it. */
export type NamedMember = NonNullable<Problem['signedIn']>
export type Session = Static<typeof SessionSchema>
export type Overview = Static<typeof OverviewListSchema>['data'][number]
export type ActivityRange = Static<typeof ActivityQuerySchema>['range']
export type Activity = Static<typeof ActivitySchema>
export type WebhookActivity = Static<typeof ActivityListSchema>['data'][number]
export type Delivery = Static<typeof DeliverySchema>
export type DeliveryState = Delivery['state']
export type DeliveryDetail = Omit<Static<typeof DeliveryDetailSchema>, 'payload'> & {
  /** The envelope's text, token by token as it is sent; null once it is erased. */
  payloadText: string | null
}
export type Attempt = DeliveryDetail['attempts'][number]
export type SignedRequest = Static<typeof DeliveryRequestSchema>
export type Incident = Static<typeof IncidentSchema>
export type Failures = Static<typeof FailuresSchema>
export type RetryJob = Static<typeof RetryJobSchema>
export type Replay = Static<typeof ReplaySchema>
export type ReplayCount = Static<typeof ReplayCountSchema>
/** What a user sets of a webhook. */
export type WebhookBody = {
  url?: string
  subscribedEventKeys?: string[]
  enabled?: boolean
  description?: string
}
/** Which past events a replay sends. */
export type ReplayBody = { since: string; until?: string; eventKeys?: string[]; include: Replay['include'] }
export type RetryMode = RetryJob['mode']
export type EventKey = Static<typeof EventKeyListSchema>['data'][number]
export type EventSummary = Static<typeof EventSummarySchema>
export type AuditEntry = Static<typeof AuditEntrySchema>
export type OwnApiKeys = Static<typeof OwnApiKeyListSchema>
export type ApiKey = OwnApiKeys['data'][number]
export type CreatedApiKey = Static<typeof CreatedApiKeySchema>
export type OperatorSession = Static<typeof OperatorSessionSchema>
export type OperatorOverview = Static<typeof OperatorOverviewSchema>
export type OperatorWebhook = Static<typeof OperatorWebhookSchema>
export type OperatorWebhooks = { data: OperatorWebhook[]; nextCursor: string | null }
export type PushSubscriptions = Static<typeof PushSubscriptionListSchema>
/** Deliveries of one webhook, by id or by what they have in common. */
export type Chosen = { deliveryIds: string[] } | { filter: Record<string, string | number> }
export type EventDetail = Omit<Static<typeof EventSchema>, 'payload' | 'deliveries'> & {
  /** Null for a member that may not see it, and once it is erased. */
  payloadText: string | null
  deliveries: Delivery[]
}

export type Template = TemplateResult | typeof nothing | string | number
export type Api = ReturnType<typeof createApi>
export type Times = ReturnType<typeof createTimes>

/** A part of the page with a state of its own. `stop` ends what it keeps asking for. */
export type View = { title: string; render(): Template; stop?: () => void }

/** A tab of a webhook's page: refreshed each time the webhook was asked for, unless it reads by itself. */
export type Tab = {
  refresh?: (webhook: Overview) => Promise<void>
  render(webhook: Overview, refresh: () => Promise<void>): Template
  stop?: () => void
}

/** The content of a dialog. `task` is the work that it starts; `onClose` is called by whatever closes it. */
export type DialogContent = {
  label: string
  render(): Template
  task?: { onFailed: (words: string) => void }
  onClose?(): void
}

/** What every view of a signed-in member works with. */
export type App = {
  session: Session
  /** The catalogue; empty where it could not be read. */
  eventKeys: readonly EventKey[]
  /** The webhooks as they stood when they were last asked for: what the next view begins with. */
  webhooks: Overview[] | null
  api: Api
  times: Times
  /** Shows the state as it is now; many calls make one rendering. */
  update: () => void
  /** Aborts once the view that is shown is left. */
  viewSignal: () => AbortSignal
  /** Shows another view of this page, such as `/developer?webhook=…`. */
  go(link: string): void
  /** Returns what closes the dialog, unless it is closed; that returns whether it was open. */
  openDialog(content: DialogContent): () => boolean
  /** Shows a short message, also to screen readers. */
  showMessage: (text: string) => void
  signOut(): Promise<void>
}

/** What `push-worker.js` uses of a service worker, which the types of a page's scripts do not have. */
export type PushWorker = {
  location: Location
  registration: { showNotification(title: string, options: NotificationOptions): Promise<void> }
  clients: { openWindow(url: string): Promise<unknown> }
  addEventListener(
    type: 'push',
    listener: (event: { data: { json(): unknown } | null; waitUntil(work: Promise<unknown>): void }) => void,
  ): void
  addEventListener(
    type: 'notificationclick',
    listener: (event: { notification: Notification; waitUntil(work: Promise<unknown>): void }) => void,
  ): void
}

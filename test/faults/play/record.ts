/** Everything that a random play leaves behind, and that its checks read. All instants are Unix ms of one machine. */
export type PlayRecord = {
  seed: number
  attemptTimeoutMs: number
  notifyAfterMs: number
  webhooks: PlayedWebhook[]
  posts: LedgerPost[]
  publications: Publication[]
  actions: UserAction[]
  faults: Fault[]
  facts: Facts
  mails: ReceivedMail[]
  processes: PlayedProcess[]
}

export type PlayedWebhook = {
  id: string
  /** What kind of endpoint it has, for reports. */
  name: string
  signingSecret: string
  /** Event keys, or `*`. */
  subscribedEventKeys: string[]
}

/** One POST as its receiver saw it. */
export type LedgerPost = {
  /** Counts all POSTs of the play from 1; the answer's body carries it, so that the recorded attempt names its POST. */
  id: number
  /** From the path that was posted to. */
  webhookId: string
  /** `X-Webhook-Event-ID`. */
  deliveryId: string
  signature: string
  body: string
  arrivedAt: number
  /** When it was answered, or the sender closed the connection; null while it was open to the end. */
  endedAt: number | null
  /** What it was answered with; null where the sender closed the connection before. */
  status: number | null
}

/** One event that a producer wanted to publish, with every try to do so. */
export type Publication = {
  /** `data.id` of the event: names it in the database too. */
  dataId: string
  eventKey: string
  idempotencyKey: string | null
  tries: PublicationTry[]
}

type PublicationTry = {
  from: number
  to: number
  /** 0 where no answer came. */
  status: number
  eventId: string | null
  deliveries: { id: string; webhookId: string }[]
}

/** A member's request. `webhookId` is null where it concerns all webhooks, `deliveryId` where it concerns several. */
export type UserAction = {
  kind: 'switch_off' | 'switch_on' | 'retry' | 'retry_all' | 'discard' | 'discard_failed'
  webhookId: string | null
  deliveryId: string | null
  from: number
  to: number
  /** 0 where no answer came: it may have been carried out. */
  status: number
}

export type FaultKind =
  | 'kill'
  | 'pause'
  | 'clock_step'
  | 'database_silence'
  | 'database_cut'
  | 'recording_error'
  | 'temporal_silence'
  | 'temporal_cut'
  | 'temporal_restart'
  | 'temporal_wipe'

export type Fault = {
  kind: FaultKind
  /** Name of the process it hit; null where it hit all of them. */
  process: string | null
  /** For reports. */
  detail: string
  from: number
  to: number
}

export type Facts = {
  events: { id: string; dataId: string; body: string }[]
  deliveries: DeliveryFacts[]
  attempts: AttemptFacts[]
  incidents: IncidentFacts[]
  notifications: NotificationFacts[]
  retryJobs: { id: string; state: string }[]
}

export type DeliveryFacts = {
  id: string
  eventId: string
  webhookId: string
  state: string
  attempts: number
  completedAt: number | null
  /** The rest of the row, for reports. */
  row: string
}

export type AttemptFacts = {
  deliveryId: string
  webhookId: string
  number: number
  trigger: string
  startedAt: number
  endedAt: number
  outcome: 'succeeded' | 'failed'
  failureCode: string | null
  statusCode: number | null
  responseBody: string | null
}

export type IncidentFacts = {
  id: string
  webhookId: string
  openedAt: number
  closedAt: number | null
  exhaustedAt: number | null
}

export type NotificationFacts = {
  id: string
  incidentId: string
  kind: number
  channel: string
  recipient: string
  state: string
  createdAt: number
}

/** `id` is that of the notification, which the Message-ID carries. */
export type ReceivedMail = { id: string; recipient: string }

export type PlayedProcess = {
  name: string
  /** Of every run of it, in order. */
  log: string
  /** When it was found to have ended although the play had not ended it. */
  endedByItself: number[]
  peakMemoryMb: number
}

/**
 * Everything that a random play leaves behind, and that its checks read. All instants are Unix ms of one machine; what was
 * still going on at the end has `to: Infinity`. `history.ts` writes it as JSON lines.
 */
export type PlayRecord = PlayRun & {
  webhooks: PlayedWebhook[]
  posts: LedgerPost[]
  publications: Publication[]
  actions: UserAction[]
  faults: Fault[]
  streams: FollowedStream[]
  mails: ReceivedMail[]
  processes: PlayedProcess[]
  /** The rows at the end; null where only the receivers' side is known. */
  facts: Facts | null
}

export type PlayRun = {
  seed: number
  attemptTimeoutMs: number
  notifyAfterMs: number
  /** How late an event of the victim may come while no fault explains more, in ms. */
  victimMs: number
  /** How much later for each other delivery that shares its queue, in ms; 0 where that is not Temporal's. */
  queuedMs: number
  /** When the rows were read. */
  endedAt: number
}

export type PlayedWebhook = {
  id: string
  organisationId: string
  /** What kind of endpoint it has, for reports. */
  name: string
  /** Empty where it is not known. */
  signingSecret: string
  /** Event keys, or `*`, when the play began or the webhook was created. */
  subscribedEventKeys: string[]
  /** A healthy webhook of an organisation that nothing is done to: its deliveries are to come in time. */
  isVictim: boolean
  /** Its endpoint answers nothing at the end, so that its deliveries wait for each other. */
  hangsAtEnd: boolean
}

/** One POST as its receiver saw it. */
export type LedgerPost = {
  /** Counts all POSTs of the play from 1; the answer's body carries it, so that the recorded attempt names its POST. */
  id: number
  /** Name of the process that sent it, by its address; null where that is not known. */
  sender: string | null
  /** From the path that was posted to, with how often the webhook's URL had been changed by then. */
  webhookId: string
  urlVersion: number
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
  organisationId: string
  /** `data.id` of the event: names it in the database too. */
  dataId: string
  eventKey: string
  idempotencyKey: string | null
  tries: PublicationTry[]
}

/** A request: which process was asked, and its answer. */
type Request = {
  /** Null where no process had an API. */
  process: string | null
  from: number
  to: number
  /** 0 where no answer came: it may have been carried out. */
  status: number
}

type PublicationTry = Request & { eventId: string | null; deliveries: { id: string; webhookId: string }[] }

/** What a change leaves of a webhook; what it does not name stays. */
export type WebhookChange = {
  enabled?: boolean
  subscribedEventKeys?: string[]
  urlVersion?: number
  isDeleted?: true
}

/** What a member or an operator did. `webhookId` is null where it concerns all, `deliveryId` where it concerns several. */
export type UserAction = Request & {
  kind:
    | 'change'
    | 'create'
    | 'retry'
    | 'retry_all'
    | 'discard'
    | 'discard_failed'
    | 'replay'
    | 'test'
    | 'erase'
    | 'signal'
    | 'signal_retry'
    | 'cancel'
    | 'terminate_workflow'
    | 'purge'
  organisationId: string
  webhookId: string | null
  deliveryId: string | null
  change: WebhookChange | null
}

export type FaultKind =
  | 'kill'
  | 'terminate'
  | 'pause'
  | 'pauses'
  | 'clock_step'
  | 'database_silence'
  | 'database_cut'
  | 'database_crash'
  | 'database_clock_step'
  | 'disk_full'
  | 'connections_exhausted'
  | 'sql_error'
  | 'locked_webhooks'
  | 'temporal_silence'
  | 'temporal_cut'
  | 'temporal_restart'
  | 'temporal_wipe'
  | 'rolling_restart'
  /** Other work than the play's keeps the machine so busy that nothing can be said about times. */
  | 'busy_machine'

export type Fault = {
  kind: FaultKind
  /** Name of the process it hit; null where it hit all of them, or a server. */
  process: string | null
  /** For reports; of locked webhooks, their ids; of a clock, how far it is from the true time. */
  detail: string
  from: number
  to: number
}

/** What one client saw of the events of an organisation, over all its connections. */
export type FollowedStream = {
  organisationId: string
  /** When it first had a position; null for never. */
  since: number | null
  /** Ids of events, in order. */
  received: string[]
  gaps: { at: number; process: string }[]
}

export type Facts = {
  events: { id: string; dataId: string | null; body: string }[]
  deliveries: DeliveryFacts[]
  attempts: AttemptFacts[]
  incidents: IncidentFacts[]
  notifications: NotificationFacts[]
  retryJobs: { id: string; state: string }[]
  /** Organisations that were to be erased, and of which a row is left. */
  halfErased: string[]
}

export type DeliveryFacts = {
  id: string
  eventId: string
  webhookId: string
  state: string
  isTest: boolean
  stopReason: string | null
  attempts: number
  createdAt: number
  completedAt: number | null
  nextAttemptAt: number | null
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
  /** When its record was committed. */
  recordedAt: number
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
  /** When it was last claimed to be sent. */
  claimedAt: number | null
}

/** `id` is that of the notification, which the Message-ID carries. */
export type ReceivedMail = { id: string; recipient: string }

export type PlayedProcess = {
  name: string
  /** Of every run of it, in order; empty in a history, which has its faults only. */
  log: string
  /** Lines of the log that a sound process does not write. */
  faults: string[]
  /** When it was found to have ended although the play had not ended it. */
  endedByItself: number[]
  peakMemoryMb: number
}

/** A promise that a play saw broken. */
export type Violation = { rule: string; deliveryId: string | null; detail: string }

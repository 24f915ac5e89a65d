import type { DataSource } from 'typeorm'
import type { CallerLookup, KnownCredentials, OrganisationCheck } from '../accounts/caller-lookup.ts'
import type { OperatorKeys } from '../accounts/operator.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { PayloadThreads } from '../catalogue/payload-threads.ts'
import type { Backlog } from '../db/queries/backlog.ts'
import type { Dispatcher } from '../deliveries/dispatch/dispatcher.ts'
import type { Sweeper } from '../deliveries/recovery/sweeper.ts'
import type { WebhookChanges, WebhookLocks } from '../webhooks/webhook-locks.ts'
import type { Commits } from '../deliveries/protocol/commit-events.ts'
import type { Publisher } from '../deliveries/publish/publish.ts'
import type { Logger } from '../observability/logger.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { UrlPolicy } from '../outbound/url-rules.ts'
import type { SecretBox } from '../secret-box.ts'
import type { Streams } from '../stream/streams.ts'
import type {
  DeliveryWorkflows,
  ErasureWorkflows,
  RetryWorkflows,
  IncidentWorkflows,
} from '../temporal/workflows.ts'
import type { AuthRefusals } from './auth/refusals.ts'
import type { RateLimits } from './limits/rate-limits.ts'
import type { Brand } from './pages/brand.ts'
import type { ReadinessParts } from './readiness.ts'

/** The dependencies of all routes; a domain function names those that it needs. */
export type ApiDependencies = {
  dataSource: DataSource
  /** PostgreSQL's clock, in Unix ms: by it a time is past or to come, whatever this machine's own says. */
  clock: { nowMs(): number }
  catalogue: Catalogue
  payloadThreads: Pick<PayloadThreads, 'check'>
  findCaller: CallerLookup
  requireOrganisation: OrganisationCheck
  secretBox: SecretBox
  publish: Publisher
  /** Limits the transactions that wait for the locks of one webhook. */
  locks: WebhookLocks
  /** Null in a process without a worker. */
  sweep: Pick<Sweeper, 'isStalled'> | null
  /** Aborted when this process begins to stop. */
  stopping: AbortSignal
  streams: Pick<Streams, 'open'>
  dispatcher: Pick<Dispatcher, 'start'>
  workflows: Pick<DeliveryWorkflows, 'wake'>
  retryWorkflows: RetryWorkflows
  incidentWorkflows: IncidentWorkflows
  erasureWorkflows: ErasureWorkflows
  commits: Commits
  webhooks: Pick<WebhookChanges, 'changed'>
  urlPolicy: UrlPolicy
  /** Ranges of the proxies whose X-Forwarded-For, -Proto and -Host are trusted. */
  trustedProxies: readonly string[]
  rateLimits: RateLimits
  known: KnownCredentials
  authRefusals: AuthRefusals
  operatorKeys: OperatorKeys
  /** Whether the short keys of the demo organisation are valid: only in a process that listens on loopback, for requests to it by a loopback host. */
  acceptsDemoKeys: boolean
  webhooksPerOrganisation: number
  /** Whether members may make API keys of their own. */
  memberApiKeys: boolean
  /** Days that deliveries in any final state are kept at least. */
  keptDays: number
  /** What browsers need to subscribe to push messages (RFC 8292, base64url); null where push is not configured. */
  vapidPublicKey: string | null
  /** The URL of this service for browsers; empty where it is not configured. */
  publicUrl: string
  /** Origins whose pages may embed the developer area; empty where framing is forbidden. */
  frameAncestors: readonly string[]
  /** How the pages present themselves. */
  brand: Brand
  /** The UI in which operators see workflows; null where it is not configured. */
  temporalUi: { url: string; namespace: string } | null
  temporal: ReadinessParts['temporal']
  /** The backlog of all organisations, seconds old at most; null where it cannot be counted in time. */
  readBacklog: () => Promise<Backlog | null>
  logger: Logger
  metrics: Metrics
}

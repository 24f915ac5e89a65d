import type { DataSource } from 'typeorm'
import type { PayloadValidator } from '../catalogue/payload-validator.ts'
import type { Dispatcher } from '../deliveries/dispatch/dispatcher.ts'
import type { Sweeper } from '../deliveries/recovery/sweeper.ts'
import type { WebhookLocks } from '../incidents/webhook-locks.ts'
import type { WebhookCache } from '../deliveries/dispatch/webhook-cache.ts'
import type { Publisher } from '../events/publish.ts'
import type { Streams } from '../events/streams.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import type { UrlPolicy } from '../outbound/url-rules.ts'
import type { SecretBox } from '../secret-box.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import type { IncidentWorkflows } from '../temporal/incident-workflows.ts'
import type { RetryWorkflows } from '../temporal/retry-workflows.ts'
import type { AuthRefusals } from './auth-refusals.ts'
import type { CallerLookup } from './caller-lookup.ts'
import type { KnownCredentials } from './known-credentials.ts'
import type { RateLimits } from './rate-limits.ts'

/** What the routes need of the house. */
export type ApiDependencies = {
  dataSource: DataSource
  findCaller: CallerLookup
  secretBox: SecretBox
  publish: Publisher
  /** Limits the transactions that wait for the locks of one webhook. */
  locks: Pick<WebhookLocks, 'commands'>
  /** Null in a process without a worker. */
  sweep: Pick<Sweeper, 'isStalled'> | null
  /** Aborted when this process is told to stop. */
  stopping: AbortSignal
  streams: Pick<Streams, 'open'>
  dispatcher: Pick<Dispatcher, 'start'>
  workflows: Pick<DeliveryWorkflows, 'wake'>
  retryWorkflows: RetryWorkflows
  incidentWorkflows: IncidentWorkflows
  /** The hold that this process has on the deliveries it commits. */
  lease: { owner: string; leaseMs: number }
  webhooks: Pick<WebhookCache, 'invalidate'>
  urlPolicy: UrlPolicy
  /** Ranges of the proxies whose X-Forwarded-For, -Proto and -Host are believed. */
  trustedProxies: readonly string[]
  rateLimits: RateLimits
  known: KnownCredentials
  authRefusals: AuthRefusals
  /** Whether the short keys of the demo organisation count: only in a process that listens on loopback. */
  acceptsDemoKeys: boolean
  webhooksPerOrganisation: number
  validatePayload: PayloadValidator
  /** What browsers need to subscribe to push messages (RFC 8292, base64url); null where push is not set up. */
  vapidPublicKey: string | null
  /** Where people reach this service in a browser; empty where nobody said. */
  publicUrl: string
  /** Where operators look at workflows; null where nobody said. */
  temporalUi: { url: string; namespace: string } | null
  engine: { isUp(): Promise<boolean> }
  logger: Logger
  metrics: Metrics
}

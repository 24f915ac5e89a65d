import type { DataSource } from 'typeorm'
import type { PayloadValidator } from '../catalogue/payload-validator.ts'
import type { Starter } from '../delivery/starter.ts'
import type { Publisher } from '../events/publish.ts'
import type { Streams } from '../events/streams.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import type { UrlPolicy } from '../outbound/url-rules.ts'
import type { SecretBox } from '../secret-box.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import type { IncidentWorkflows } from '../temporal/incident-workflows.ts'
import type { RetryWorkflows } from '../temporal/retry-workflows.ts'
import type { RateLimits } from './rate-limits.ts'

/** What the routes need of the house. */
export type ApiDependencies = {
  dataSource: DataSource
  secretBox: SecretBox
  publish: Publisher
  streams: Pick<Streams, 'open'>
  starter: Pick<Starter, 'start'>
  workflows: Pick<DeliveryWorkflows, 'wake'>
  retryWorkflows: RetryWorkflows
  incidentWorkflows: IncidentWorkflows
  /** Id under which this process leases the deliveries it commits. */
  processId: string
  urlPolicy: UrlPolicy
  /** Proxies in front of this process whose X-Forwarded-For is believed. */
  trustedProxyHops: number
  rateLimits: RateLimits
  webhooksPerOrganisation: number
  validatePayload: PayloadValidator
  /** What browsers need to subscribe to push messages (RFC 8292, base64url); null where push is not set up. */
  vapidPublicKey: string | null
  engine: { isUp(): Promise<boolean> }
  logger: Logger
  metrics: Metrics
}

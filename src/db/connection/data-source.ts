import { DataSource } from 'typeorm'
import { DatabaseClient, type ConnectionPolicy } from './database-client.ts'
import {
  ApiKey,
  Member,
  Organisation,
  OrganisationErasure,
  PushSubscription,
  AuditEntry,
  PortalLink,
  Session,
  StreamTicket,
} from '../entities/organisation.ts'
import { Attempt, Delivery } from '../entities/delivery.ts'
import { Event, EventHorizon, IdempotencyKey } from '../entities/event.ts'
import { Incident, Notification } from '../entities/incident.ts'
import { RetryJobWebhook, RetryJob } from '../entities/retry-job.ts'
import { Webhook } from '../entities/webhook.ts'
import { Initial1 } from '../migrations/0001-initial.ts'
import { OrganisationErasure2 } from '../migrations/0002-organisation-erasure.ts'
import { PortalLinks3 } from '../migrations/0003-portal-links.ts'
import { DeveloperArea4 } from '../migrations/0004-developer-area.ts'
import { Uuidv7Function5 } from '../migrations/0005-uuidv7.ts'
import { ValidateConstraints6 } from '../migrations/0006-validate-constraints.ts'
import { OnlineIndexes7 } from '../migrations/0007-online-indexes.ts'
import { PausedWorkflows8 } from '../migrations/0008-paused-workflows.ts'
import { PushOwners9 } from '../migrations/0009-push-owners.ts'
import { DeliveryProtocol10 } from '../migrations/0010-delivery-protocol.ts'
import { RetryJobList11 } from '../migrations/0011-retry-job-list.ts'
import { Replays12 } from '../migrations/0012-replays.ts'
import { PayloadErasure13 } from '../migrations/0013-payload-erasure.ts'
import { OperatorIndexes14, OperatorView14 } from '../migrations/0014-operator-view.ts'
import { ApiKeyMember15, AuditAge15 } from '../migrations/0015-audit-age.ts'
import { DEFAULT_STATEMENT_TIMEOUT_MS, withSessionLimits, type Pooler } from './session-limits.ts'
import type { Pool } from 'pg'
import { settlesWithin } from '../../timers.ts'

/** How long a query may wait for a connection, and a connection for the server's first answers. */
const CONNECT_TIMEOUT_MS = 5_000

/** From when on the operating system asks whether the server's host is still there (then each second, ten times). */
const KEEP_ALIVE_AFTER_MS = 10_000

/** Closing waits no longer than this for connections that are lost. */
const CLOSE_TIMEOUT_MS = 3_000

/** `url` is that of PostgreSQL, or of its pooler. */
export type DatabaseOptions = {
  url: string
  poolSize: number
  pooler?: Pooler
  /** One migration refuses to run while other sessions of the default name are open. */
  applicationName?: string
  /** How long opening one connection may take. */
  connectTimeoutMs?: number
  /** How long one statement may take in the server. */
  statementTimeoutMs?: number
  /** How long one statement may wait for a lock, where the connection is direct; 0: without a limit of its own. */
  lockTimeoutMs?: number
  onIdleError?: (error: Error) => void
}

/**
 * The connection pool to PostgreSQL, not yet connected (`await dataSource.initialize()`).
 * A connection that breaks while idle is only reported: the next query opens a new one. Every wait on it ends.
 */
export function createDataSource(options: DatabaseOptions): DataSource {
  const { url, pooler = 'none', statementTimeoutMs = DEFAULT_STATEMENT_TIMEOUT_MS } = options
  const policy: ConnectionPolicy = { statementTimeoutMs, pooler, open: new Set() }
  return new DataSource({
    type: 'postgres',
    url: pooler === 'none' ? withSessionLimits(url, statementTimeoutMs, options.lockTimeoutMs) : url,
    poolSize: options.poolSize,
    connectTimeoutMS: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    applicationName: options.applicationName ?? 'posthorn',
    poolErrorHandler: options.onIdleError ?? (() => undefined),
    entities: [
      Organisation,
      OrganisationErasure,
      Member,
      ApiKey,
      Webhook,
      Event,
      Delivery,
      Attempt,
      RetryJob,
      RetryJobWebhook,
      IdempotencyKey,
      Incident,
      Notification,
      PushSubscription,
      AuditEntry,
      Session,
      EventHorizon,
      StreamTicket,
      PortalLink,
    ],
    migrations: [
      Initial1,
      OrganisationErasure2,
      PortalLinks3,
      DeveloperArea4,
      Uuidv7Function5,
      ValidateConstraints6,
      OnlineIndexes7,
      PausedWorkflows8,
      PushOwners9,
      DeliveryProtocol10,
      RetryJobList11,
      Replays12,
      PayloadErasure13,
      OperatorView14,
      OperatorIndexes14,
      AuditAge15,
      ApiKeyMember15,
    ],
    migrationsTransactionMode: 'each',
    extra: {
      Client: DatabaseClient,
      policy,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    },
  })
}

/** Closes the pool. What is still under way then may fail. */
export async function closeDataSource(dataSource: DataSource): Promise<void> {
  const closed = dataSource.destroy()
  if (await settlesWithin(closed, CLOSE_TIMEOUT_MS)) await closed
}

/** Connections of a pool: open, of those idle, calls that wait for one, and how many it opens at most. */
export type PoolStatus = { total: number; idle: number; waiting: number; size: number }

export function poolStatus(dataSource: DataSource): PoolStatus {
  // TypeORM has no word for it; with PostgreSQL this is the pool of `pg`.
  const { master } = dataSource.driver as unknown as { master: Pool }
  const { totalCount, idleCount, waitingCount, options } = master
  return { total: totalCount, idle: idleCount, waiting: waitingCount, size: options.max }
}

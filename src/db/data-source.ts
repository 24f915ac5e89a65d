import type { ClientBase } from 'pg'
import { DataSource } from 'typeorm'
import { ApiKey } from './entities/api-key.ts'
import { Attempt } from './entities/attempt.ts'
import { AuditEntry } from './entities/audit-entry.ts'
import { Delivery } from './entities/delivery.ts'
import { Event } from './entities/event.ts'
import { EventHorizon } from './entities/event-horizon.ts'
import { IdempotencyKey } from './entities/idempotency-key.ts'
import { Incident } from './entities/incident.ts'
import { Member } from './entities/member.ts'
import { Notification } from './entities/notification.ts'
import { Organisation } from './entities/organisation.ts'
import { PushSubscription } from './entities/push-subscription.ts'
import { RetryJobWebhook } from './entities/retry-job-webhook.ts'
import { RetryJob } from './entities/retry-job.ts'
import { Session } from './entities/session.ts'
import { StreamTicket } from './entities/stream-ticket.ts'
import { Webhook } from './entities/webhook.ts'
import { Initial1 } from './migrations/0001-initial.ts'
import { PeopleActOnDeliveries2 } from './migrations/0002-people-act-on-deliveries.ts'
import { PurgeIndex3 } from './migrations/0003-retention.ts'
import { Incidents4 } from './migrations/0004-incidents.ts'
import { ApiKeyNames5 } from './migrations/0005-api-key-names.ts'
import { Audit6 } from './migrations/0006-audit.ts'
import { FirstAttempts7 } from './migrations/0007-first-attempts.ts'
import { EventStream8 } from './migrations/0008-event-stream.ts'
import { Sessions9 } from './migrations/0009-sessions.ts'
import { KeyValues15 } from './migrations/0015-key-values.ts'
import { StoppedAndTestDeliveries16 } from './migrations/0016-stopped-and-test-deliveries.ts'

/** How long a query may wait for a connection before the request is answered 503. */
const CONNECT_TIMEOUT_MS = 5_000

/**
 * The connection pool to PostgreSQL 18, not yet connected (`await dataSource.initialize()`).
 * A connection that breaks while idle is only reported: the next query opens a new one.
 */
export function createDataSource(options: {
  url: string
  poolSize: number
  onIdleError?: (error: Error) => void
}): DataSource {
  return new DataSource({
    type: 'postgres',
    url: options.url,
    poolSize: options.poolSize,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    applicationName: 'posthorn',
    poolErrorHandler: options.onIdleError ?? (() => undefined),
    entities: [
      Organisation,
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
    ],
    migrations: [
      Initial1,
      PeopleActOnDeliveries2,
      PurgeIndex3,
      Incidents4,
      ApiKeyNames5,
      Audit6,
      FirstAttempts7,
      EventStream8,
      Sessions9,
      KeyValues15,
      StoppedAndTestDeliveries16,
    ],
    migrationsTransactionMode: 'each',
    extra: { keepAlive: true, onConnect: preferIndexes },
  })
}

/**
 * Each statement of ours has its index. What the server knows of the tables is behind when a burst fills them, and then
 * it would rather read all of them: recording an outcome took nine times as long. Said on the connection and not in its
 * parameters, which a pooler in front of the server may refuse.
 */
async function preferIndexes(client: ClientBase): Promise<void> {
  await client.query('SET enable_seqscan = off')
}

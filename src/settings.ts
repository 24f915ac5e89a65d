import { DEFAULT_STATEMENT_TIMEOUT_MS, type Pooler } from './db/session-limits.ts'
import type { LogLevel } from './logger.ts'
import { NOTIFICATION_SETTINGS } from './notification-settings.ts'
import {
  boolean,
  integer,
  oneOf,
  optionalPort,
  parseAllowHttp,
  parseCidrs,
  parseDatabaseUrl,
  parseKeyRing,
  parseTrustedProxies,
  plain,
  webAddress,
} from './setting-parsers.ts'
import { setting } from './setting.ts'

/**
 * Every setting of Posthorn, in the order of `.env.example`.
 * A variable without a fallback has to be set for the commands that need it.
 */
export const SETTINGS = {
  databaseUrl: setting(
    'DATABASE_URL',
    'PostgreSQL 18, as postgres://user:password@host:port/database',
    undefined,
    parseDatabaseUrl,
  ),
  databasePoolSize: setting(
    'DATABASE_POOL_SIZE',
    'connections each process opens at most',
    '20',
    integer(1, 500),
  ),
  databasePooler: setting(
    'DATABASE_POOLER',
    'what DATABASE_URL leads to: none, PostgreSQL itself; transaction, a pooler that pools transactions, such as PgBouncer',
    'none',
    oneOf<Pooler>('none', 'transaction'),
  ),
  databaseStatementTimeoutMs: setting(
    'DATABASE_STATEMENT_TIMEOUT_MS',
    'how long PostgreSQL may take for one statement, in milliseconds',
    String(DEFAULT_STATEMENT_TIMEOUT_MS),
    integer(500, 600_000),
  ),
  encryptionKeys: setting(
    'POSTHORN_ENCRYPTION_KEYS',
    'key ring for signing secrets: id:64-hex-characters, the newest first, separated by commas',
    undefined,
    parseKeyRing,
  ),
  host: setting('HOST', 'address the API listens on', '127.0.0.1', plain),
  port: setting('PORT', 'port the API listens on', '3000', integer(0, 65_535)),
  metricsHost: setting('METRICS_HOST', 'address that /metrics listens on', '127.0.0.1', plain),
  metricsPort: setting('METRICS_PORT', 'port of /metrics, 0 picks one; empty for none', '', optionalPort),
  apiConnections: setting(
    'API_CONNECTIONS',
    'connections to the API that a process has open at once; beyond them only probes are answered',
    '5000',
    integer(10, 100_000),
  ),
  trustedProxies: setting(
    'TRUSTED_PROXIES',
    'addresses or ranges of the proxies in front of the API, separated by commas; only their X-Forwarded-For counts',
    '',
    parseTrustedProxies,
  ),
  rateLimitManagement: setting(
    'RATE_LIMIT_MANAGEMENT',
    'requests per API key within ten seconds, published events aside; 0 for no limit',
    '1000',
    integer(0, 1_000_000),
  ),
  rateLimitPublish: setting(
    'RATE_LIMIT_PUBLISH',
    'events published per API key within ten seconds; 0 for no limit',
    '0',
    integer(0, 1_000_000),
  ),
  rateLimitAuthFailures: setting(
    'RATE_LIMIT_AUTH_FAILURES',
    'requests without a valid API key per address within a minute; 0 for no limit',
    '600',
    integer(0, 1_000_000),
  ),
  rateLimitOpen: setting(
    'RATE_LIMIT_OPEN',
    'requests per address within a minute to probes, pages, sign-in and unknown paths; 0 for no limit',
    '6000',
    integer(0, 1_000_000),
  ),
  publishBacklogLimit: setting(
    'PUBLISH_BACKLOG_LIMIT',
    'deliveries that may wait for their first attempt, in all, before publishing is refused; 0 for no limit',
    '1000000',
    integer(0, 1_000_000_000),
  ),
  webhooksPerOrganisation: setting(
    'WEBHOOKS_PER_ORGANISATION',
    'webhooks that an organisation may have, deleted ones not counted',
    '100',
    integer(1, 100_000),
  ),
  streamsPerKey: setting('STREAMS_PER_KEY', 'open event streams per API key', '50', integer(1, 100_000)),
  streamsPerProcess: setting('STREAMS_PER_PROCESS', 'open event streams', '2000', integer(1, 100_000)),
  logLevel: setting(
    'LOG_LEVEL',
    'debug, info, warn, error or silent',
    'info',
    oneOf<LogLevel>('debug', 'info', 'warn', 'error', 'silent'),
  ),
  temporalAddress: setting('TEMPORAL_ADDRESS', 'host:port of the Temporal frontend', '127.0.0.1:7233', plain),
  temporalNamespace: setting('TEMPORAL_NAMESPACE', 'Temporal namespace', 'default', plain),
  temporalTaskQueue: setting('TEMPORAL_TASK_QUEUE', 'task queue of the workers', 'posthorn', plain),
  temporalTls: setting('TEMPORAL_TLS', 'true to connect to Temporal over TLS', 'false', boolean),
  temporalApiKey: setting('TEMPORAL_API_KEY', 'API key for Temporal, when it asks for one', '', plain),
  temporalUiUrl: setting('TEMPORAL_UI_URL', 'where operators open the Temporal UI', '', webAddress),
  firstAttempt: setting(
    'FIRST_ATTEMPT',
    'who makes the first attempt: workflow; overflow: the process itself while Temporal is behind; direct: always itself',
    'overflow',
    oneOf('workflow', 'overflow', 'direct'),
  ),
  firstAttemptSlots: setting(
    'FIRST_ATTEMPT_SLOTS',
    'first attempts that a process makes beside Temporal at once',
    '256',
    integer(1, 10_000),
  ),
  attemptTimeoutMs: setting(
    'ATTEMPT_TIMEOUT_MS',
    'deadline of one whole POST in milliseconds',
    '15000',
    integer(100, 60_000),
  ),
  retryLeadMs: setting(
    'RETRY_LEAD_MS',
    'how long before a retry is due its attempt is handed to a worker, which holds it until the instant',
    '1000',
    integer(0, 5_000),
  ),
  startConcurrency: setting(
    'START_CONCURRENCY',
    'workflow starts under way at once',
    '40',
    integer(1, 1_000),
  ),
  activitySlots: setting(
    'WORKER_ACTIVITY_SLOTS',
    'first attempts of healthy webhooks under way at once per worker',
    '200',
    integer(1, 10_000),
  ),
  retrySlots: setting(
    'WORKER_RETRY_SLOTS',
    'retries and attempts of webhooks that fail quickly under way at once per worker, held ones included',
    '1000',
    integer(1, 10_000),
  ),
  slowSlots: setting(
    'WORKER_SLOW_SLOTS',
    'attempts of webhooks that are slow, hang or are unknown under way at once per worker',
    '1000',
    integer(1, 10_000),
  ),
  webhookConcurrency: setting(
    'WEBHOOK_CONCURRENCY',
    'attempts to one webhook in flight at once per worker at most, and deliveries of it that a retry job has under way',
    '50',
    integer(1, 1_000),
  ),
  shutdownGraceMs: setting(
    'SHUTDOWN_GRACE_MS',
    'how long attempts under way may still take when the process is told to stop',
    '20000',
    integer(0, 600_000),
  ),
  retentionCompletedDays: setting(
    'RETENTION_COMPLETED_DAYS',
    'days that completed deliveries are kept, with their attempts and payloads',
    '30',
    integer(1, 3_650),
  ),
  retentionFailedDays: setting(
    'RETENTION_FAILED_DAYS',
    'days that permanently failed and stopped deliveries are kept, with their attempts and payloads',
    '90',
    integer(1, 3_650),
  ),
  retentionAuditDays: setting(
    'RETENTION_AUDIT_DAYS',
    'days that entries of the audit trail are kept',
    '365',
    integer(30, 3_650),
  ),
  ...NOTIFICATION_SETTINGS,
  allowHttp: setting(
    'POSTHORN_ALLOW_HTTP',
    'true to allow plain http receivers (not for production), loopback for those on this machine only',
    'false',
    parseAllowHttp,
  ),
  allowedCidrs: setting(
    'POSTHORN_ALLOWED_CIDRS',
    'private address ranges that receivers may have, separated by commas, such as 10.1.0.0/16',
    '',
    parseCidrs,
  ),
}

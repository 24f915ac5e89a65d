import type { LogLevel } from './logger.ts'
import {
  boolean,
  contact,
  integer,
  mailAddress,
  oneOf,
  optionalPort,
  parseCidrs,
  parseDatabaseUrl,
  parseKeyRing,
  plain,
  vapidKey,
  webAddress,
} from './setting-parsers.ts'

/** One environment variable: what it means, its default as text, and how text becomes a value (throws a reason). */
type Setting<T> = { variable: string; description: string; fallback?: string; parse: (text: string) => T }

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
  trustedProxyHops: setting(
    'TRUSTED_PROXY_HOPS',
    'proxies in front of the API that set X-Forwarded-For; without one the address of the connection counts',
    '0',
    integer(0, 10),
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
  firstAttempt: setting(
    'FIRST_ATTEMPT',
    'who makes the first attempt: workflow',
    'workflow',
    oneOf('workflow'),
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
    'attempts under way at once per worker, those that are held until their instant included',
    '1000',
    integer(1, 10_000),
  ),
  workflowTaskSlots: setting(
    'WORKER_WORKFLOW_SLOTS',
    'workflow tasks under way at once per worker',
    '100',
    integer(2, 10_000),
  ),
  cachedWorkflows: setting(
    'WORKER_CACHED_WORKFLOWS',
    'workflows kept in memory per worker',
    '2000',
    integer(1, 100_000),
  ),
  webhookConcurrency: setting(
    'WEBHOOK_CONCURRENCY',
    'attempts to one webhook under way at once per worker, and deliveries of it that a retry job has under way',
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
  publicUrl: setting(
    'POSTHORN_PUBLIC_URL',
    'where people reach this service in a browser, such as https://hooks.example.com; notifications link to it',
    '',
    webAddress,
  ),
  notifyAfterSeconds: setting(
    'POSTHORN_NOTIFY_AFTER_SECONDS',
    'seconds of continuous failure after which the first notification of an incident goes out',
    '300',
    integer(1, 86_400),
  ),
  smtpHost: setting('SMTP_HOST', 'mail server for notifications; without one no e-mail is sent', '', plain),
  smtpPort: setting('SMTP_PORT', 'port of the mail server', '587', integer(1, 65_535)),
  smtpTls: setting(
    'SMTP_TLS',
    'starttls: refuse a server that does not offer it; implicit: TLS from the first byte; none: in clear',
    'starttls',
    oneOf('starttls', 'implicit', 'none'),
  ),
  smtpUser: setting('SMTP_USER', 'user name at the mail server, when it asks for one', '', plain),
  smtpPassword: setting('SMTP_PASSWORD', 'password at the mail server', '', plain),
  smtpFrom: setting('SMTP_FROM', 'address that notifications come from', 'posthorn@localhost', mailAddress),
  smtpConnections: setting('SMTP_CONNECTIONS', 'connections to the mail server at most', '2', integer(1, 20)),
  smtpTimeoutMs: setting(
    'SMTP_TIMEOUT_MS',
    'how long the mail server may take for each step, in milliseconds',
    '30000',
    integer(100, 60_000),
  ),
  vapidPrivateKey: setting(
    'VAPID_PRIVATE_KEY',
    'private key for push messages (RFC 8292, base64url of 32 bytes); without one there is no push',
    '',
    vapidKey,
  ),
  vapidSubject: setting(
    'VAPID_SUBJECT',
    'how a push service can reach you: a mailto: or https: address',
    'mailto:posthorn@localhost',
    contact,
  ),
  allowHttp: setting(
    'POSTHORN_ALLOW_HTTP',
    'true to allow plain http receivers (not for production)',
    'false',
    boolean,
  ),
  allowedCidrs: setting(
    'POSTHORN_ALLOWED_CIDRS',
    'private address ranges that receivers may have, separated by commas, such as 10.1.0.0/16',
    '',
    parseCidrs,
  ),
}

function setting<T>(
  variable: string,
  description: string,
  fallback: string | undefined,
  parse: (text: string) => T,
): Setting<T> {
  return fallback === undefined
    ? { variable, description, parse }
    : { variable, description, fallback, parse }
}

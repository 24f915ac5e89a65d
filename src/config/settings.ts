import type { Pooler } from '../db/connection/session-limits.ts'
import type { LogLevel } from '../observability/logger.ts'
import {
  parseOperatorKeys,
  integer,
  oneOf,
  optionalPort,
  parseAllowHttp,
  parseCidrs,
  parseDatabaseUrl,
  parseKeyRing,
  parseTrustedProxies,
  plain,
  parseFrameAncestors,
  brandName,
  hexColor,
  webAddress,
  setting,
  secretSetting,
} from './parsers.ts'
import { NOTIFICATION_SETTINGS, RELAY_SETTINGS, TEMPORAL_SETTINGS } from './external-settings.ts'

/**
 * Every setting of Posthorn, in the order of `.env.example`.
 * A variable without a fallback has to be set for the commands that need it.
 */
export const SETTINGS = {
  databaseUrl: secretSetting(
    'DATABASE_URL',
    'PostgreSQL 15 to 18, as postgres://user:password@host:port/database',
    undefined,
    parseDatabaseUrl,
  ),
  databasePoolSize: setting(
    'DATABASE_POOL_SIZE',
    'database connections per process at most; two more with METRICS_PORT',
    '20',
    integer(1, 500),
  ),
  databasePooler: setting(
    'DATABASE_POOLER',
    'what DATABASE_URL connects to: none: PostgreSQL itself; transaction: PgBouncer, or another pooler of transactions',
    'none',
    oneOf<Pooler>('none', 'transaction'),
  ),
  encryptionKeys: secretSetting(
    'POSTHORN_ENCRYPTION_KEYS',
    'key ring for signing secrets: id:64-hex-characters, the newest first, separated by commas',
    undefined,
    parseKeyRing,
  ),
  operatorKeys: secretSetting(
    'POSTHORN_OPERATOR_KEYS',
    'keys of the operator API, name:secret:scopes, separated by commas; without keys there is none',
    '',
    parseOperatorKeys,
  ),
  host: setting('HOST', 'address the API listens on', '127.0.0.1', plain),
  port: setting('PORT', 'port the API listens on', '3000', integer(0, 65_535)),
  metricsHost: setting('METRICS_HOST', 'address that METRICS_PORT listens on', '127.0.0.1', plain),
  metricsPort: setting(
    'METRICS_PORT',
    'port of /metrics and the probes of each process, 0 picks one; empty for none',
    '',
    optionalPort,
  ),
  trustedProxies: setting(
    'TRUSTED_PROXIES',
    'addresses or ranges of the proxies in front of the API, separated by commas; only their X-Forwarded-For counts',
    '',
    parseTrustedProxies,
  ),
  rateLimitManagement: setting(
    'RATE_LIMIT_MANAGEMENT',
    'requests per API key, operator key or signed-in member within ten seconds, without published events; 0 for no limit',
    '1000',
    integer(0, 1_000_000),
  ),
  rateLimitPublish: setting(
    'RATE_LIMIT_PUBLISH',
    'events published per API key or operator key within ten seconds; 0 for no limit',
    '0',
    integer(0, 1_000_000),
  ),
  publishBacklogLimit: setting(
    'PUBLISH_BACKLOG_LIMIT',
    'deliveries that wait for their first attempt, in total, before publishing is refused; 0 for no limit',
    '1000000',
    integer(0, 1_000_000_000),
  ),
  webhooksPerOrganisation: setting(
    'WEBHOOKS_PER_ORGANISATION',
    'webhooks per organisation, without deleted ones; more than 1000 means 1000',
    '100',
    integer(1, 100_000),
  ),
  memberApiKeys: setting(
    'MEMBER_API_KEYS',
    'on: members make API keys of their own; off: only the operator makes keys',
    'on',
    oneOf('on', 'off'),
  ),
  catalogueFile: setting(
    'POSTHORN_CATALOGUE',
    'JSON file with the event keys; empty for the built-in ones',
    '',
    plain,
  ),
  logLevel: setting(
    'LOG_LEVEL',
    'debug, info, warn, error or silent',
    'info',
    oneOf<LogLevel>('debug', 'info', 'warn', 'error', 'silent'),
  ),
  ...TEMPORAL_SETTINGS,
  firstAttempt: setting(
    'FIRST_ATTEMPT',
    'who makes first attempts: workflow; overflow: the process itself while Temporal is behind; direct: the process itself',
    'overflow',
    oneOf('workflow', 'overflow', 'direct'),
  ),
  attemptTimeoutMs: setting(
    'ATTEMPT_TIMEOUT_MS',
    'deadline of one whole POST in milliseconds',
    '15000',
    integer(100, 60_000),
  ),
  webhookConcurrency: setting(
    'WEBHOOK_CONCURRENCY',
    'attempts to one webhook in flight per process at most, and deliveries of it that a retry job has in progress',
    '50',
    integer(1, 1_000),
  ),
  shutdownGraceMs: setting(
    'SHUTDOWN_GRACE_MS',
    'time that attempts in flight have to finish at shutdown, in milliseconds',
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
    'address of this service in a browser, such as https://hooks.example.com; notifications and portal links lead to it',
    '',
    webAddress,
  ),
  frameAncestors: setting(
    'POSTHORN_FRAME_ANCESTORS',
    'origins whose pages may embed the developer area, separated by commas, such as https://app.example.com; empty: none',
    '',
    parseFrameAncestors,
  ),
  brandName: setting(
    'BRAND_NAME',
    'name of this service in its pages and mails, of at most 40 characters',
    'Posthorn',
    brandName,
  ),
  brandLogoFile: setting(
    'BRAND_LOGO_FILE',
    'SVG or PNG file of at most 256 KiB with the logo of the pages; empty for that of Posthorn',
    '',
    plain,
  ),
  brandAccentColor: setting(
    'BRAND_ACCENT_COLOR',
    'colour of links and buttons in the pages, such as #0b57d0, darker or lighter where it is not legible; empty: blue',
    '',
    hexColor,
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
  ...RELAY_SETTINGS,
}

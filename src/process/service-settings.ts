import type { Config } from '../config/load.ts'
import { MAX_WEBHOOKS_PER_ORGANISATION } from '../domain/webhook-status.ts'
import { createRateLimits } from '../http/limits/rate-limits.ts'
import type { Logger } from '../observability/logger.ts'
import { readBrand } from './setting-files.ts'
import type { DataSource } from 'typeorm'
import { createOperatorKeys } from '../accounts/operator.ts'
import { createAuthRefusals } from '../http/auth/refusals.ts'
import {
  CALLER_TTL_MS,
  createCallerLookup,
  createKnownCredentials,
  createOrganisationCheck,
} from '../accounts/caller-lookup.ts'
import type { Metrics } from '../observability/metrics.ts'
import { isLoopbackHost } from '../outbound/host-names.ts'

/* The options of the parts of a process, from its configuration. */

export function workerSettings(config: Config) {
  return {
    namespace: config.temporalNamespace,
    taskQueue: config.temporalTaskQueue,
    shutdownGraceMs: config.shutdownGraceMs,
    version:
      config.temporalBuildId === ''
        ? null
        : { deploymentName: config.temporalDeploymentName, buildId: config.temporalBuildId },
  }
}

export function retentionLimits({ retentionCompletedDays, retentionFailedDays, retentionAuditDays }: Config) {
  return {
    completedDays: retentionCompletedDays,
    failedDays: retentionFailedDays,
    auditDays: retentionAuditDays,
  }
}

/** Of one address: requests without a valid key, and those that need none. */
const AUTH_FAILURES_PER_MINUTE = 600
const OPEN_REQUESTS_PER_MINUTE = 6_000

export function apiSettings(config: Config, logger: Logger) {
  const { temporalUiUrl: url, temporalNamespace: namespace } = config
  return {
    urlPolicy: { allowHttp: config.allowHttp, allowedCidrs: config.allowedCidrs },
    trustedProxies: config.trustedProxies,
    webhooksPerOrganisation: webhookLimit(config, logger),
    memberApiKeys: config.memberApiKeys === 'on',
    keptDays: Math.min(config.retentionCompletedDays, config.retentionFailedDays),
    publicUrl: config.publicUrl,
    frameAncestors: config.frameAncestors,
    brand: readBrand(config),
    temporalUi: url === '' ? null : { url, namespace },
  }
}

/** Warns of an address policy that is meant for development. */
export function warnOfOpenPolicy(config: Config, logger: Logger): void {
  if (config.allowHttp !== false) {
    const fields = { event: 'policy.http_allowed', loopbackOnly: config.allowHttp === 'loopback' }
    logger.warn(fields, 'POSTHORN_ALLOW_HTTP: receivers without TLS are allowed')
  }
  if (config.allowedCidrs.length > 0) {
    const fields = { event: 'policy.private_allowed', ranges: config.allowedCidrs }
    logger.warn(fields, 'POSTHORN_ALLOWED_CIDRS: receivers in private address ranges are allowed')
  }
}

/** Returns how many webhooks an organisation may have; warns where the setting allows more. */
export function webhookLimit(
  { webhooksPerOrganisation }: Pick<Config, 'webhooksPerOrganisation'>,
  logger: Pick<Logger, 'warn'>,
): number {
  if (webhooksPerOrganisation <= MAX_WEBHOOKS_PER_ORGANISATION) return webhooksPerOrganisation
  const limit = MAX_WEBHOOKS_PER_ORGANISATION
  const fields = { event: 'policy.webhooks_capped', configured: webhooksPerOrganisation, limit }
  logger.warn(fields, 'WEBHOOKS_PER_ORGANISATION: an organisation may have 1,000 webhooks at most')
  return limit
}

/** Everything that decides who a request is from, and how many it may make. */
export function createAuthentication(
  dataSource: DataSource,
  config: Config,
  { logger, metrics }: { logger: Logger; metrics: Metrics },
) {
  const known = createKnownCredentials()
  const limits = {
    management: config.rateLimitManagement,
    publish: config.rateLimitPublish,
    authFailures: AUTH_FAILURES_PER_MINUTE,
    open: OPEN_REQUESTS_PER_MINUTE,
  }
  const rateLimits = createRateLimits(limits, { logger, metrics })
  return {
    findCaller: createCallerLookup(dataSource, CALLER_TTL_MS, known),
    requireOrganisation: createOrganisationCheck(dataSource),
    known,
    rateLimits,
    authRefusals: createAuthRefusals({ limit: rateLimits.authentication, known, logger, metrics }),
    operatorKeys: createOperatorKeys(config.operatorKeys),
    acceptsDemoKeys: isLoopbackHost(config.host),
  }
}

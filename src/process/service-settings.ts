import { type Config, ConfigError } from '../config/load.ts'
import { MAX_WEBHOOKS_PER_ORGANISATION } from '../domain/webhook-status.ts'
import { createRateLimits } from '../http/limits/rate-limits.ts'
import type { Logger } from '../observability/logger.ts'
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
import { readFileSync, statSync } from 'node:fs'
import type { Brand } from '../http/pages/brand.ts'
import type { TemporalCredentials } from '../temporal/temporal-service.ts'

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
  const rateLimits = createRateLimits(limits, { metrics })
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

export const BRAND_SETTINGS = ['brandName', 'brandLogoFile', 'brandAccentColor'] as const

/** Every page shows it, at most 56 pixels high. */
const MAX_LOGO_BYTES = 256 * 1024

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')

/** Reads how the pages present themselves. Throws ConfigError where the file of the logo cannot be used. */
export function readBrand(config: Pick<Config, (typeof BRAND_SETTINGS)[number]>): Brand {
  const { brandName: name, brandLogoFile: path, brandAccentColor: accentColor } = config
  if (path === '') return { name, accentColor, logo: null }
  const body = readLogo(path)
  if (body.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE))
    return { name, accentColor, logo: { body, extension: 'png' } }
  // An SVG in another encoding than UTF-8 is refused too.
  if (!/^\uFEFF?\s*<(?:[?!][^]*<)?svg[\s>]/.test(body.toString())) throw unusable('is neither SVG nor PNG')
  return { name, accentColor, logo: { body, extension: 'svg' } }
}

function readLogo(path: string): Buffer {
  try {
    const stats = statSync(path)
    // Reading a pipe might never end.
    if (!stats.isFile()) throw unusable('is not a file')
    if (stats.size > MAX_LOGO_BYTES) throw unusable(`is larger than ${MAX_LOGO_BYTES / 1024} KiB`)
    return readFileSync(path)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw unusable(`cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unreadable'})`)
  }
}

function unusable(reason: string): ConfigError {
  return new ConfigError([`BRAND_LOGO_FILE ${reason}`])
}

export const CREDENTIAL_SETTINGS = [
  'temporalTlsCaFile',
  'temporalTlsCertFile',
  'temporalTlsKeyFile',
  'temporalApiKey',
] as const

type Settings = Pick<Config, (typeof CREDENTIAL_SETTINGS)[number]>

/** Reads the files of certificates and keys. Throws ConfigError naming each that cannot be read, or lacks its other half. */
export function readTemporalCredentials(settings: Settings): TemporalCredentials {
  const problems: string[] = []
  const read = (variable: string, path: string): Buffer | null => {
    if (path === '') return null
    try {
      return readFileSync(path)
    } catch (error) {
      problems.push(`${variable} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unreadable'})`)
      return null
    }
  }
  const serverRootCACertificate = read('TEMPORAL_TLS_CA_FILE', settings.temporalTlsCaFile)
  const crt = read('TEMPORAL_TLS_CERT_FILE', settings.temporalTlsCertFile)
  const key = read('TEMPORAL_TLS_KEY_FILE', settings.temporalTlsKeyFile)
  if ((settings.temporalTlsCertFile === '') !== (settings.temporalTlsKeyFile === ''))
    problems.push('TEMPORAL_TLS_CERT_FILE and TEMPORAL_TLS_KEY_FILE belong together: set both')
  if (problems.length > 0) throw new ConfigError(problems)

  const { temporalApiKey: apiKey } = settings
  const files = {
    ...(serverRootCACertificate === null ? {} : { serverRootCACertificate }),
    ...(crt === null || key === null ? {} : { clientCertPair: { crt, key } }),
  }
  const isTls = apiKey !== '' || Object.keys(files).length > 0
  return { tls: isTls ? files : false, ...(apiKey === '' ? {} : { apiKey }) }
}

import type { DataSource } from 'typeorm'
import type { Config } from '../config.ts'
import { createAuthRefusals } from '../http/auth-refusals.ts'
import { CALLER_MAX_AGE_MS, createCallerLookup } from '../http/caller-lookup.ts'
import { createKnownCredentials } from '../http/known-credentials.ts'
import { createRateLimits } from '../http/rate-limits.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import { isLoopbackHost } from '../outbound/loopback.ts'
import { rateLimitSettings } from './service-settings.ts'

/** Everything that decides who a request is from, and how many it may make. */
export function createAuthentication(
  dataSource: DataSource,
  config: Config,
  { logger, metrics }: { logger: Logger; metrics: Metrics },
) {
  const known = createKnownCredentials()
  const rateLimits = createRateLimits(rateLimitSettings(config), { logger, metrics })
  return {
    findCaller: createCallerLookup(dataSource, CALLER_MAX_AGE_MS, known),
    known,
    rateLimits,
    authRefusals: createAuthRefusals({ limit: rateLimits.authentication, known, logger, metrics }),
    acceptsDemoKeys: isLoopbackHost(config.host),
  }
}

import type { DataSource } from 'typeorm'
import type { Config } from '../config/load.ts'
import { createOperatorKeys } from '../http/auth/operator-key.ts'
import { createAuthRefusals } from '../http/auth/refusals.ts'
import {
  CALLER_TTL_MS,
  createCallerLookup,
  createKnownCredentials,
  createOrganisationCheck,
} from '../accounts/caller-lookup.ts'
import { createRateLimits } from '../http/limits/rate-limits.ts'
import type { Logger } from '../observability/logger.ts'
import type { Metrics } from '../observability/metrics.ts'
import { isLoopbackHost } from '../outbound/host-names.ts'
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
    findCaller: createCallerLookup(dataSource, CALLER_TTL_MS, known),
    requireOrganisation: createOrganisationCheck(dataSource),
    known,
    rateLimits,
    authRefusals: createAuthRefusals({ limit: rateLimits.authentication, known, logger, metrics }),
    operatorKeys: createOperatorKeys(config.operatorKeys),
    acceptsDemoKeys: isLoopbackHost(config.host),
  }
}

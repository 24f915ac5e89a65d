import type { Environment } from '../config.ts'
import { developmentKeyRing } from './data-folder.ts'

/** Receivers on this machine are what a newcomer tries first. */
const LOOPBACK_RANGES = '127.0.0.0/8,::1/128'

/** A Ctrl-C is to end everything within ten seconds; an attempt cut off by it is made again at the next start. */
const SHUTDOWN_GRACE_MS = '4000'

/** The environment as given, completed with what development needs. What is set already wins, set to empty too. */
export function developmentEnvironment(
  env: Environment,
  parts: { dataDir: string; databaseUrl: string; temporalAddress: string },
): Environment {
  return {
    POSTHORN_ALLOW_HTTP: 'true',
    POSTHORN_ALLOWED_CIDRS: LOOPBACK_RANGES,
    SHUTDOWN_GRACE_MS,
    ...env,
    POSTHORN_ENCRYPTION_KEYS: env['POSTHORN_ENCRYPTION_KEYS'] || developmentKeyRing(parts.dataDir),
    HOST: '127.0.0.1',
    DATABASE_URL: parts.databaseUrl,
    TEMPORAL_ADDRESS: parts.temporalAddress,
  }
}

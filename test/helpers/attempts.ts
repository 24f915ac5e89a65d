import type { DataSource } from 'typeorm'
import type { AttemptDependencies } from '../../src/delivery/attempt.ts'
import { createHttpClient } from '../../src/outbound/http-client.ts'
import { testSecretBox } from './factories.ts'
import { silentLogger } from './silent-logger.ts'

/** What attempts need, with receivers on this machine allowed. */
export function attemptDependencies(dataSource: DataSource, attemptTimeoutMs = 15_000): AttemptDependencies {
  return {
    dataSource,
    secretBox: testSecretBox,
    logger: silentLogger,
    attemptTimeoutMs,
    httpClient: createHttpClient({
      allowHttp: true,
      allowedCidrs: ['127.0.0.0/8'],
      timeoutMs: attemptTimeoutMs,
      connectTimeoutMs: 2_000,
      maxResponseBytes: 32_768,
      userAgent: 'Posthorn/test',
    }),
  }
}

import type { DataSource } from 'typeorm'
import type { ActivityDependencies } from '../../activities/index.ts'
import { createHandedOver } from '../../src/delivery/handed-over.ts'
import { createRecordFirstSuccess } from '../../src/delivery/record-first-successes.ts'
import { createIncidentTurns } from '../../src/delivery/turns.ts'
import { createWebhookGate } from '../../src/delivery/webhook-gate.ts'
import { createWebhookWatch } from '../../src/delivery/webhook-watch.ts'
import { createMetrics } from '../../src/metrics.ts'
import { createHttpClient } from '../../src/outbound/http-client.ts'
import { createShutdown } from '../../src/shutdown.ts'
import { testSecretBox } from './factories.ts'
import { silentLogger } from './silent-logger.ts'

/** What activities need, with receivers on this machine allowed; nothing is woken. */
export function attemptDependencies(dataSource: DataSource, attemptTimeoutMs = 15_000): ActivityDependencies {
  return {
    dataSource,
    clock: { nowMs: () => Date.now() },
    secretBox: testSecretBox,
    logger: silentLogger,
    metrics: createMetrics(),
    attemptTimeoutMs,
    gate: createWebhookGate(50),
    webhookConcurrency: 50,
    turns: createIncidentTurns(),
    watch: createWebhookWatch(),
    handedOver: createHandedOver(),
    shutdown: createShutdown(1_000),
    recordFirstSuccess: createRecordFirstSuccess(dataSource, { follow: false }),
    incidentWorkflows: { tell: () => Promise.resolve() },
    channels: { email: null, push: null },
    workflows: { wake: () => Promise.resolve() },
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

/** Lets every message through at once. */
export const unbounded = { enter: () => Promise.resolve(() => undefined) }

import type { DataSource } from 'typeorm'
import { createEndpoints } from '../../../src/deliveries/attempt/endpoint-concurrency.ts'
import { createDeliveryRows, type DeliveryRows } from '../../../src/deliveries/dispatch/delivery-rows.ts'
import { createDispatcher, type Dispatcher } from '../../../src/deliveries/dispatch/dispatcher.ts'
import { createWebhookChanges } from '../../../src/webhooks/webhook-locks.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createShutdown } from '../../../src/shutdown.ts'
import { processTimers } from '../../../src/timers.ts'
import { silentLogger } from '../silent-logger.ts'

type Options = Parameters<typeof createDispatcher>[0]

export function testRows(dataSource: DataSource, leaseMs = 20_000): DeliveryRows {
  return createDeliveryRows({ dataSource, locks: createWebhookLocks(), metrics: createMetrics(), leaseMs })
}

/** A dispatcher that leaves first attempts to the workflows, unless `options` override that. */
export function createTestDispatcher(
  options: Pick<Options, 'rows' | 'workflows'> & Partial<Options>,
): Dispatcher {
  return createDispatcher({
    createAttempt: () => () => Promise.reject(new Error('this dispatcher makes no attempts')),
    // Such as have answered: an unknown one has one slot.
    endpoints: { ...createEndpoints({ maxLimit: 50, initialLimit: 50 }), hasAnswered: () => true },
    webhookChanges: createWebhookChanges(),
    logger: silentLogger,
    metrics: createMetrics(),
    timers: processTimers,
    mode: 'workflow',
    concurrency: 5,
    makesAttempts: true,
    slots: 50,
    shutdown: createShutdown(1_000),
    isServing: () => true,
    ...options,
  })
}

import { createDispatcher, type Dispatcher } from '../../../src/deliveries/dispatch/dispatcher.ts'
import { createShutdown } from '../../../src/shutdown.ts'
import { createEndpoints } from '../../../src/deliveries/attempt/endpoint-registry.ts'
import { createPace } from '../../../src/deliveries/attempt/pace.ts'
import { createWebhookCache } from '../../../src/deliveries/dispatch/webhook-cache.ts'

type Options = Parameters<typeof createDispatcher>[0]

/** Leases of deliveries, as tests of what keeps them have them. */
export const TEST_LEASE_MS = 15_000

/** A dispatcher that leaves first attempts to the workflows, unless `options` override that. */
export function createTestDispatcher(
  options: Pick<Options, 'dataSource' | 'workflows' | 'logger' | 'metrics' | 'processId'> & Partial<Options>,
): Dispatcher {
  return createDispatcher({
    makeAttempt: () => Promise.reject(new Error('this dispatcher makes no attempts')),
    endpoints: createEndpoints({ maxLimit: 50 }),
    webhooks: createWebhookCache(options.dataSource),
    mode: 'workflow',
    concurrency: 5,
    makesAttempts: false,
    slots: 50,
    attemptTimeoutMs: 1_000,
    timeoutPace: createPace({ intervalMs: 1 }),
    leaseMs: TEST_LEASE_MS,
    shutdown: createShutdown(1_000),
    isServing: () => true,
    isBackfillPending: () => false,
    ...options,
  })
}

/** Reports the ends of attempts that workflows asked this process for. */
export function endAttempts(
  dispatcher: Dispatcher,
  deliveries: readonly { deliveryId: string; webhookId: string }[],
): void {
  for (const { deliveryId, webhookId } of deliveries)
    dispatcher.onAttempt({ type: 'ended', isInline: false, deliveryId, webhookId })
}

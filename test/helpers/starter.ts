import { createHandedOver } from '../../src/delivery/handed-over.ts'
import { createStarter, type Starter } from '../../src/delivery/starter.ts'
import { createShutdown } from '../../src/shutdown.ts'
import { createWebhookWatch } from '../../src/delivery/webhook-watch.ts'

type Options = Parameters<typeof createStarter>[0]

/** Leases of deliveries, as tests of what keeps them have them. */
export const TEST_LEASE_MS = 15_000

/** A starter that leaves first attempts to the workflows, unless `options` say otherwise. */
export function createTestStarter(
  options: Pick<Options, 'dataSource' | 'workflows' | 'logger' | 'metrics' | 'processId'> & Partial<Options>,
): Starter {
  return createStarter({
    makeAttempt: () => Promise.reject(new Error('this starter makes no attempts')),
    watch: createWebhookWatch(),
    handedOver: createHandedOver(),
    mode: 'workflow',
    concurrency: 5,
    perWebhook: null,
    slots: 50,
    attemptTimeoutMs: 1_000,
    leaseMs: TEST_LEASE_MS,
    shutdown: createShutdown(1_000),
    isServing: () => true,
    ...options,
  })
}

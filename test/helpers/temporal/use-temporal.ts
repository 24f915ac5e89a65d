import type { TestDependencies } from '../deliveries/attempts.ts'
import type { WorkflowHandle } from '@temporalio/client'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import type { DatabaseClock } from '../../../src/db/connection/database-clock.ts'
import {
  createDeliveryWorkflows,
  deliveryWorkflowId,
  type DeliveryWorkflows,
} from '../../../src/temporal/delivery-workflows.ts'
import type { DeliverEventResult } from '../../../src/domain/workflow-inputs.ts'
import { createTimeSkippingServer, withWorker } from './time-skipping.ts'

/** What the tests of one `describe` about workflows share; filled before the first of them. */
export type TestTemporal = {
  /** Its server skips time. Await one result at a time. */
  readonly environment: TestWorkflowEnvironment
  /**
   * Runs `work` while workers with the real activities serve a task queue of its own. `leadMs` is that of the workflows,
   * 0 if not given; `clock` is that of the activities and of the rows.
   */
  withWorkflows: <T>(
    dependencies: TestDependencies,
    work: (workflows: DeliveryWorkflows, taskQueue: string, clock: DatabaseClock) => Promise<T>,
    options?: { leadMs: number },
  ) => Promise<T>
  /** Returns the handle of a delivery's workflow. */
  handleOf: (deliveryId: string) => WorkflowHandle
  /** Waits for the end of a delivery's workflow. */
  resultOf: (deliveryId: string) => Promise<DeliverEventResult>
}

/** Starts a time-skipping Temporal server for the `describe` it is called in, and stops it after its tests. */
export function useTemporal(): TestTemporal {
  const client = () => temporal.environment.client
  const temporal = {
    withWorkflows: (dependencies, work, { leadMs } = { leadMs: 0 }) =>
      withWorker(temporal.environment, dependencies, (taskQueue, clock) =>
        work(createDeliveryWorkflows({ client, taskQueue, leadMs, eager: false }), taskQueue, clock),
      ),
    handleOf: (deliveryId) => client().workflow.getHandle(deliveryWorkflowId(deliveryId)),
    resultOf: (deliveryId) => temporal.handleOf(deliveryId).result() as Promise<DeliverEventResult>,
  } as TestTemporal
  before(async () => {
    Object.assign(temporal, { environment: await createTimeSkippingServer() })
  })
  after(() => temporal.environment.teardown())
  return temporal
}

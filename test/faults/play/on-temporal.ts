import { Client, Connection } from '@temporalio/client'
import { deliveryWorkflowId } from '../../../src/temporal/workflows.ts'
import { RETENTION_SCHEDULE_ID } from '../../../src/temporal/retention-schedule.ts'
import { note } from './act.ts'
import { nowMs } from './clock.ts'
import type { UserAction } from './record.ts'
import type { PlayWorld } from './world.ts'

const CALL_LIMIT_MS = 5_000

/** What an operator does in Temporal itself, past Posthorn. Status 200 where Temporal took it, 0 where not. */
export async function onTemporal(
  world: PlayWorld,
  kind: 'signal' | 'signal_retry' | 'cancel' | 'terminate_workflow' | 'purge',
  of: Pick<UserAction, 'organisationId' | 'webhookId' | 'deliveryId'>,
): Promise<void> {
  const action = note(world, { kind, ...of })
  try {
    const connection = await Connection.connect({
      address: world.temporal.address,
      connectTimeout: CALL_LIMIT_MS,
    })
    try {
      const client = new Client({ connection })
      await connection.withDeadline(Date.now() + CALL_LIMIT_MS, () => call(client, kind, of.deliveryId ?? ''))
      action.status = 200
    } finally {
      await connection.close()
    }
  } catch {
    // Temporal is away, or the workflow has ended.
  }
  action.to = nowMs()
}

async function call(client: Client, kind: UserAction['kind'], deliveryId: string): Promise<void> {
  if (kind === 'purge') {
    await client.schedule.getHandle(RETENTION_SCHEDULE_ID).trigger()
    return
  }
  const handle = client.workflow.getHandle(deliveryWorkflowId(deliveryId))
  if (kind === 'cancel') await handle.cancel()
  else if (kind === 'terminate_workflow') await handle.terminate()
  // The row says whether it is to stop: the signal only wakes the workflow up.
  else await handle.signal(kind === 'signal' ? 'stop' : 'retry')
}

import { Client, Connection } from '@temporalio/client'
import { deliveryWorkflowId } from '../../src/temporal/workflows.ts'
import { toMs, type History } from '../helpers/temporal/history.ts'

/** What the workflows show of deliveries that waited across an upgrade. */
export type WaitedHistories = {
  /** That ended in the run in which the release before had begun them. */
  continued: number
  /** Of which an attempt was requested by the code of before and made by the activity of after. */
  handedOver: number
  /** Of which a workflow task failed, as it does where the code cannot replay what was recorded. */
  broken: string[]
}

/** Reads the workflows of deliveries that have ended. `upgradedAtMs` is when the new release began, in Unix ms. */
export async function readWaitedHistories(
  address: string,
  deliveryIds: readonly string[],
  upgradedAtMs: number,
): Promise<WaitedHistories> {
  const connection = await Connection.connect({ address })
  try {
    const { workflow } = new Client({ connection })
    const found: WaitedHistories = { continued: 0, handedOver: 0, broken: [] }
    for (const deliveryId of deliveryIds) {
      const handle = workflow.getHandle(deliveryWorkflowId(deliveryId))
      await handle.result()
      const { status, startTime } = await handle.describe()
      const history = await handle.fetchHistory()
      if (history.events?.some((event) => event.workflowTaskFailedEventAttributes))
        found.broken.push(deliveryId)
      if (status.name === 'COMPLETED' && startTime.getTime() < upgradedAtMs) found.continued += 1
      if (isHandedOver(history, upgradedAtMs)) found.handedOver += 1
    }
    return found
  } finally {
    await connection.close()
  }
}

/** Whether an activity was scheduled before an instant and completed after it. */
function isHandedOver({ events }: History, instantMs: number): boolean {
  const scheduledBefore = new Set(
    events
      ?.filter((event) => event.activityTaskScheduledEventAttributes && toMs(event.eventTime) < instantMs)
      .map((event) => String(event.eventId)),
  )
  return (events ?? []).some(
    ({ activityTaskCompletedEventAttributes: completed, eventTime }) =>
      completed && toMs(eventTime) > instantMs && scheduledBefore.has(String(completed.scheduledEventId)),
  )
}

import { proxyActivities, proxySinks, type Sinks } from '@temporalio/workflow'

/** Lets a workflow report to the process of its worker that it ran; costs the server nothing. */
export interface NoopSinks extends Sinks {
  noop: { ran(): void }
}

const { noop } = proxySinks<NoopSinks>()

export type NoopActivities = { attempt(): Promise<void> }

const { attempt } = proxyActivities<NoopActivities>({ startToCloseTimeout: '1 minute' })

/** The minimum that Temporal can do for one attempt: a workflow with one activity, neither of which does anything. */
export async function doNothing(): Promise<void> {
  await attempt()
  noop.ran()
}

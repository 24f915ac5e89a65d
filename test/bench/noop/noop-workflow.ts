import { proxySinks, type Sinks } from '@temporalio/workflow'

/** Lets a workflow report to the process of its worker that it ran; costs the server nothing. */
export interface NoopSinks extends Sinks {
  noop: { ran(): void }
}

const { noop } = proxySinks<NoopSinks>()

/** The minimum that Temporal can do for one workflow. */
export async function doNothing(): Promise<void> {
  noop.ran()
  return Promise.resolve()
}

import { proxySinks, type Sinks } from '@temporalio/workflow'

/** How a workflow tells the process of its worker that it ran; costs the server nothing. */
export interface NoopSinks extends Sinks {
  noop: { ran(): void }
}

const { noop } = proxySinks<NoopSinks>()

/** The least that an engine can do for one workflow. */
export async function doNothing(): Promise<void> {
  noop.ran()
  return Promise.resolve()
}

import { startHarnessProcess } from '../harness/harness-process.ts'

/** `concurrency`: starts in progress at once. */
export type NoopRequest = { address: string; workflows: number; concurrency: number }

/** Workflows per second that do nothing, from the first start until the last has run, with a worker of their own. */
export async function measureNoop(request: NoopRequest): Promise<number> {
  const child = startHarnessProcess<NoopRequest>(new URL('./noop-main.ts', import.meta.url))
  try {
    return await child.ask<number>(request)
  } finally {
    await child.stop()
  }
}

import { START_CONCURRENCY } from '../../../src/process/dispatch.ts'
import { startHarnessProcess } from '../harness/harness-process.ts'
import type { NoopAnswer, NoopRequest } from './noop-main.ts'

/**
 * Runs workflows with one activity that does nothing, in a process of their own: as many at once as Posthorn starts, or
 * `perSecond`.
 */
export function runNoops(address: string, workflows: number, perSecond: number | null): Promise<NoopAnswer> {
  const child = startHarnessProcess<NoopRequest>(new URL('noop-main.ts', import.meta.url))
  const request = { address, workflows, concurrency: START_CONCURRENCY, perSecond }
  return child.ask<NoopAnswer>(request).finally(() => child.stop())
}

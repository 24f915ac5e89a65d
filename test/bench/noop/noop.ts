import type { Pace } from '../harness/generator.ts'
import { startHarnessProcess } from '../harness/harness-process.ts'
import type { NoopAnswer, NoopRequest } from './noop-main.ts'

/** Runs workflows with one activity that does nothing, in a process of their own. */
export function runNoops(address: string, workflows: number, pace: Pace): Promise<NoopAnswer> {
  const child = startHarnessProcess<NoopRequest>(new URL('noop-main.ts', import.meta.url))
  return child.ask<NoopAnswer>({ address, workflows, pace }).finally(() => child.stop())
}

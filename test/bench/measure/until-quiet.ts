import { setTimeout as delay } from 'node:timers/promises'
import type { Load } from '../load.ts'
import { rounded } from './distribution.ts'

/** Processor time in ms by process. */
export type Cpu = Record<string, number>

/** What the programs use in a second when they have nothing to do stays far below. */
const QUIET_MS_PER_SECOND = 200
const LONGEST_MS = 180_000

/** Waits until all work is done, such as workflows that follow later, and answers the processor time until then. */
export async function untilQuiet(stage: Pick<Load, 'cpu'>): Promise<Cpu> {
  const deadline = Date.now() + LONGEST_MS
  let before = stage.cpu()
  for (;;) {
    await delay(1_000)
    const now = stage.cpu()
    if (total(difference(now, before)) < QUIET_MS_PER_SECOND || Date.now() > deadline) return before
    before = now
  }
}

/** Used between two readings. */
export function difference(after: Cpu, before: Cpu): Cpu {
  return Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, ms - (before[name] ?? 0)]))
}

/** Of Posthorn and what it needs; not of who publishes and receives. */
export function total(cpu: Cpu): number {
  const harness = ['harness', 'generator', 'receiver']
  return Object.entries(cpu).reduce((sum, [name, ms]) => (harness.includes(name) ? sum : sum + ms), 0)
}

/** As columns of a row: `totalMs`, and each process by its name. */
export function cpuColumns(cpu: Cpu, deliveries: number): Record<string, number> {
  const each = (ms: number): number => rounded(ms / deliveries)
  const byProcess = Object.entries(cpu).map(([name, ms]) => [`${name}Ms`, each(ms)] as const)
  return { totalMs: each(total(cpu)), ...Object.fromEntries(byProcess) }
}

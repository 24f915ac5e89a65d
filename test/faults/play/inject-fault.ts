import { setTimeout as delay } from 'node:timers/promises'
import type { TcpProxy } from '../rig/tcp-proxy.ts'
import { nowMs } from './clock.ts'
import type { PlannedFault } from './plan.ts'
import type { PlayProcess } from './play-process.ts'
import type { Fault } from './record.ts'
import type { PlayWorld } from './world.ts'

/** The target of a fault: two faults with the same target are not injected together. */
const taken = new WeakMap<PlayWorld, Set<string>>()

/** Injects one fault, ends it after its time, and notes it in the journal. Passes over one whose target is taken. */
export async function injectFault(world: PlayWorld, planned: PlannedFault): Promise<void> {
  const inUse = taken.get(world) ?? new Set<string>()
  taken.set(world, inUse)
  const targets = planned.process === null ? world.processes : [world.processes[planned.process]!]
  const resources = resourcesOf(planned, targets)
  if (resources.some((resource) => inUse.has(resource))) return
  for (const resource of resources) inUse.add(resource)
  const fault: Fault = {
    kind: planned.kind,
    process: planned.process === null ? null : targets[0]!.name,
    detail: detailOf(planned),
    from: nowMs(),
    to: Infinity,
  }
  world.faults.push(fault)
  try {
    await carryOut(world, planned, targets)
  } finally {
    fault.to = nowMs()
    for (const resource of resources) inUse.delete(resource)
  }
}

async function carryOut(world: PlayWorld, planned: PlannedFault, targets: PlayProcess[]): Promise<void> {
  const { kind, forMs } = planned
  switch (kind) {
    case 'kill':
      await Promise.all(targets.map((played) => played.kill()))
      await delay(forMs)
      await Promise.all(targets.map((played) => played.start()))
      return
    case 'pause':
      for (const played of targets) played.signal('SIGSTOP')
      await delay(forMs)
      for (const played of targets) played.signal('SIGCONT')
      return
    case 'clock_step':
      for (const { clock } of targets) clock?.set(planned.offsetSeconds)
      await delay(forMs)
      for (const { clock } of targets) clock?.set(0)
      return
    case 'database_silence':
      await silence(
        targets.map(({ database }) => database),
        planned,
      )
      return
    case 'temporal_silence':
      await silence(
        targets.map(({ temporal }) => temporal),
        planned,
      )
      return
    case 'database_cut':
      for (const { database } of targets) database.cut()
      return
    case 'temporal_cut':
      for (const { temporal } of targets) temporal.cut()
      return
    case 'recording_error':
      await world.recordingFault.begin(planned.sqlstate)
      await delay(forMs)
      await world.recordingFault.end()
      return
    case 'temporal_restart':
      await world.temporal.stop()
      await delay(forMs)
      await world.temporal.start()
      return
    case 'temporal_wipe':
      await world.temporal.wipe()
  }
}

async function silence(proxies: TcpProxy[], { silence: which, forMs }: PlannedFault): Promise<void> {
  for (const proxy of proxies) proxy.fallSilent(which)
  await delay(forMs)
  for (const proxy of proxies) proxy.speak()
}

function resourcesOf({ kind }: PlannedFault, targets: PlayProcess[]): string[] {
  switch (kind) {
    case 'kill':
    case 'pause':
      return targets.map(({ name }) => name)
    case 'clock_step':
      return targets.map(({ name }) => `clock of ${name}`)
    case 'database_silence':
    case 'database_cut':
      return targets.map(({ name }) => `database of ${name}`)
    case 'temporal_silence':
    case 'temporal_cut':
      return targets.map(({ name }) => `Temporal of ${name}`)
    case 'recording_error':
      return ['recording']
    case 'temporal_restart':
    case 'temporal_wipe':
      return ['Temporal']
  }
}

function detailOf({ kind, silence: which, sqlstate, offsetSeconds }: PlannedFault): string {
  if (kind === 'recording_error') return sqlstate
  if (kind === 'clock_step') return `${offsetSeconds} s`
  return kind.endsWith('silence') ? which : ''
}

import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { TcpProxy } from '../rig/tcp-proxy.ts'
import { nowMs } from './clock.ts'
import type { PlannedFault } from './plan.ts'
import type { PlayProcess } from './play-process.ts'
import type { Fault } from './record.ts'
import type { PlayWorld } from './world.ts'

/** Threads that run or want to, for each core, as an average of ten seconds. Where processors are fast a play alone has fewer. */
const MAX_LOAD = 4
const SAMPLE_EVERY_MS = 250
const SAMPLES = 40
const LOCKED_WEBHOOKS = 40
/** Repeated pauses: so long, and so long between them. */
const SHORT_PAUSE_MS = 1_500
const BETWEEN_PAUSES_MS = 500

/** The target of a fault: two faults with the same target are not injected together. */
const taken = new WeakMap<PlayWorld, Set<string>>()

/** Injects one fault, ends it after its time, and notes it in the journal. Passes over one whose target is taken. */
export async function injectFault(world: PlayWorld, planned: PlannedFault): Promise<void> {
  const inUse = taken.get(world) ?? new Set<string>()
  taken.set(world, inUse)
  const targets = planned.process === null ? world.processes : [world.processes[planned.process]!]
  const resources = resourcesOf(planned, planned.kind === 'rolling_restart' ? world.processes : targets)
  if (resources.some((resource) => inUse.has(resource))) return
  for (const resource of resources) inUse.add(resource)
  try {
    if (planned.kind === 'rolling_restart')
      for (const target of world.processes)
        await noted(world, { ...planned, kind: 'terminate' }, [target], target.name)
    else await noted(world, planned, targets, processOf(planned, targets))
  } finally {
    for (const resource of resources) inUse.delete(resource)
  }
}

async function noted(
  world: PlayWorld,
  planned: PlannedFault,
  targets: PlayProcess[],
  process: string | null,
): Promise<void> {
  const locked = planned.kind === 'locked_webhooks' ? webhooksToLock(world) : []
  const detail = detailOf(planned, locked)
  const fault: Fault = { kind: planned.kind, process, detail, from: nowMs(), to: Infinity }
  world.faults.push(fault)
  await carryOut(world, planned, targets, locked)
  fault.to = nowMs()
}

async function carryOut(
  { database, databaseClock, temporal }: PlayWorld,
  planned: PlannedFault,
  targets: PlayProcess[],
  locked: string[],
): Promise<void> {
  const { kind, forMs } = planned
  const lasting = async (end: () => unknown): Promise<void> => {
    await delay(forMs)
    await end()
  }
  const each = (act: (played: PlayProcess) => unknown): void => {
    for (const target of targets) act(target)
  }
  switch (kind) {
    case 'kill':
    case 'terminate':
      await Promise.all(targets.map((played) => played.end(kind === 'kill' ? 'SIGKILL' : 'SIGTERM')))
      return lasting(() => Promise.all(targets.map((played) => played.start())))
    case 'pause':
      each((played) => played.signal('SIGSTOP'))
      return lasting(() => {
        each((played) => played.signal('SIGCONT'))
      })
    case 'pauses': {
      const until = nowMs() + forMs
      while (nowMs() < until) {
        each((played) => played.signal('SIGSTOP'))
        await delay(SHORT_PAUSE_MS)
        each((played) => played.signal('SIGCONT'))
        await delay(BETWEEN_PAUSES_MS)
      }
      return
    }
    case 'clock_step':
      each(({ clock }) => clock?.set(planned.offsetSeconds))
      return lasting(() => {
        each(({ clock }) => clock?.set(0))
      })
    case 'database_silence':
    case 'temporal_silence': {
      const proxyOf = (played: PlayProcess): TcpProxy =>
        kind === 'database_silence' ? played.database : played.temporal
      each((played) => proxyOf(played).fallSilent(planned.silence))
      return lasting(() => {
        each((played) => proxyOf(played).speak())
      })
    }
    case 'database_cut':
      each((played) => played.database.cut())
      return
    case 'temporal_cut':
      each((played) => played.temporal.cut())
      return
    case 'database_crash':
      await database.crash()
      return lasting(() => database.start())
    case 'database_clock_step':
      databaseClock?.set(planned.offsetSeconds)
      return lasting(() => databaseClock?.set(0))
    case 'disk_full':
      return lasting(await database.fillDisk())
    case 'connections_exhausted':
      return lasting(await database.exhaust())
    case 'sql_error':
      return lasting(await database.failWrites(planned.writes, planned.sqlstate))
    case 'locked_webhooks':
      return lasting(await database.lock(locked))
    case 'temporal_restart':
      await temporal.stop()
      return lasting(() => temporal.start())
    case 'temporal_wipe':
      return temporal.wipe()
    case 'rolling_restart':
    case 'busy_machine':
      return
  }
}

/** Notes as a fault of all when and for how long the machine has more to do than a play gives it. */
export function watchMachine({ faults }: PlayWorld): () => void {
  const samples: number[] = []
  let busy: Fault | null = null
  const timer = setInterval(() => {
    samples.push(runnableThreads())
    if (samples.length < SAMPLES) return
    const load = samples.reduce((sum, sample) => sum + sample, 0) / SAMPLES / cpus().length
    samples.shift()
    if (busy === null && load > MAX_LOAD) {
      busy = {
        kind: 'busy_machine',
        process: null,
        detail: `load ${load.toFixed(1)}`,
        from: nowMs() - SAMPLES * SAMPLE_EVERY_MS,
        to: Infinity,
      }
      faults.push(busy)
    } else if (busy !== null && load <= MAX_LOAD) {
      busy.to = nowMs()
      busy = null
    }
  }, SAMPLE_EVERY_MS)
  return () => clearInterval(timer)
}

/** At this moment: the average of a minute would show a busy machine when it has been busy for one. */
function runnableThreads(): number {
  return Number(/ (\d+)\//.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1])
}

/** Of others than the victim, in no order. */
function webhooksToLock({ webhooks }: PlayWorld): string[] {
  const others = webhooks.filter(({ isVictim }) => !isVictim).map(({ id }) => id)
  return others.slice(-LOCKED_WEBHOOKS)
}

/** Null for a fault of all processes, or of a server. */
function processOf({ kind, process }: PlannedFault, targets: PlayProcess[]): string | null {
  if (process === null) return null
  return isOfServer(kind) ? null : targets[0]!.name
}

function isOfServer(kind: Fault['kind']): boolean {
  return resourcesOf({ kind }, []).length > 0
}

function resourcesOf({ kind }: Pick<PlannedFault, 'kind'>, targets: PlayProcess[]): string[] {
  switch (kind) {
    case 'kill':
    case 'terminate':
    case 'pause':
    case 'pauses':
    case 'rolling_restart':
      return targets.map(({ name }) => name)
    case 'clock_step':
      return targets.map(({ name }) => `clock of ${name}`)
    case 'database_silence':
    case 'database_cut':
      return targets.map(({ name }) => `database of ${name}`)
    case 'temporal_silence':
    case 'temporal_cut':
      return targets.map(({ name }) => `Temporal of ${name}`)
    case 'database_crash':
    case 'disk_full':
    case 'connections_exhausted':
    case 'sql_error':
      return ['database']
    case 'database_clock_step':
      return ['clock of PostgreSQL']
    case 'locked_webhooks':
      return ['locks']
    case 'temporal_restart':
    case 'temporal_wipe':
      return ['Temporal']
    case 'busy_machine':
      return []
  }
}

function detailOf(planned: PlannedFault, locked: string[]): string {
  const { kind, silence, sqlstate, writes, offsetSeconds } = planned
  if (kind === 'sql_error') return `${sqlstate} of each ${writes}`
  if (kind === 'locked_webhooks') return locked.join(' ')
  if (kind === 'clock_step' || kind === 'database_clock_step') return `${offsetSeconds} s`
  return kind.endsWith('silence') ? silence : ''
}

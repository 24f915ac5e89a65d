import { readdirSync, readFileSync } from 'node:fs'

/** Of one process in ms: its own processor time (all threads, user and system), and that of children that ended. */
export type ProcessTimes = { own: number; endedChildren: number; parentPid: number }

/** USER_HZ, in which Linux counts processor time for programs; 100 on every platform it is built for. */
const TICK_MS = 1_000 / 100

/** Null for a process that is gone. Linux only. */
export function processTimes(pid: number): ProcessTimes | null {
  const stat = readOrNull(`/proc/${pid}/stat`)
  if (stat === null) return null
  // The name, in brackets, may hold anything; what follows starts with field 3 of proc_pid_stat(5).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = (field: number): number => Number(fields[field - 3])
  return {
    own: (ticks(14) + ticks(15)) * TICK_MS,
    endedChildren: (ticks(16) + ticks(17)) * TICK_MS,
    parentPid: ticks(4),
  }
}

/** Processor time in ms of a process alone. */
export function cpuOfProcess(pid: number): number {
  return processTimes(pid)?.own ?? 0
}

/** Of a process with all its children, those that ended included: PostgreSQL has one for each connection. */
export function cpuWithChildren(pid: number): number {
  const children = allPids()
    .map(processTimes)
    .filter((times) => times?.parentPid === pid)
  const parent = processTimes(pid)
  const ofParent = parent === null ? 0 : parent.own + parent.endedChildren
  return children.reduce((sum, times) => sum + (times?.own ?? 0), ofParent)
}

/** The process that was started with this argument, among others. */
export function findProcess(argument: string): number {
  const pid = allPids().find((candidate) =>
    readOrNull(`/proc/${candidate}/cmdline`)?.split('\0').includes(argument),
  )
  if (pid === undefined) throw new Error(`no process has the argument ${argument}`)
  return pid
}

function allPids(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger)
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

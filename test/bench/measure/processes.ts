import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'

// Of processes on this machine, from /proc: Linux only.

/** In ms: its own processor time (all threads, user and system), and that of children that ended. */
type ProcessTimes = { own: number; endedChildren: number; parentPid: number }

/** USER_HZ, in which Linux counts processor time for programs; 100 on every platform it is built for. */
const TICK_MS = 1_000 / 100
const KIB_PER_MIB = 1_024

/** Processor time in ms of a process alone; 0 for one that is gone. */
export function cpuOfProcess(pid: number): number {
  return processTimes(pid)?.own ?? 0
}

/** Returns a reading of the processor time in ms of a PostgreSQL with all its backends, which are processes. */
export async function cpuOfPostgres(url: string): Promise<() => number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const postmaster = processTimes(rows[0]!.pid)?.parentPid ?? 0
  await client.end()
  return () => cpuWithChildren(postmaster)
}

/** Of a process with all its children, those that ended included. */
function cpuWithChildren(pid: number): number {
  const parent = processTimes(pid)
  return readdirSync('/proc')
    .map(Number)
    .filter(Number.isInteger)
    .map(processTimes)
    .filter((times) => times?.parentPid === pid)
    .reduce((sum, times) => sum + (times?.own ?? 0), parent === null ? 0 : parent.own + parent.endedChildren)
}

/** Null for a process that is gone. */
function processTimes(pid: number): ProcessTimes | null {
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

/** Resident memory of processes together, in MiB; 0 for one that is gone. */
export function residentMib(...pids: readonly number[]): number {
  const kib = pids.map((pid) => {
    const [, size = 0] = /^VmRSS:\s+(\d+) kB$/m.exec(readOrNull(`/proc/${pid}/status`) ?? '') ?? []
    return Number(size)
  })
  return Math.round(kib.reduce((sum, size) => sum + size, 0) / KIB_PER_MIB)
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

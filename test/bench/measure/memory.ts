import { readFileSync } from 'node:fs'

const KIB_PER_MIB = 1_024

/** Resident memory of a process in MiB; 0 for one that is gone. Linux only. */
export function residentMib(pid: number): number {
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Math.round(Number(kib ?? 0) / KIB_PER_MIB)
  } catch {
    return 0
  }
}
